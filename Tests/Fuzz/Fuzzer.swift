import Glibc

/// The target that the environment names.
private let target: FuzzTarget = {
    guard let name = getenv("FUZZ"), let target = FuzzTarget(rawValue: String(cString: name)) else {
        fatalError("FUZZ is one of \(FuzzTarget.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return target
}()

/// What libFuzzer calls with each input. A fault ends the process: the sanitizer's, or a promise that does not hold.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        try target.check(UnsafeRawBufferPointer(start: start, count: count))
    } catch {
        fatalError("\(error)")
    }
    return 0
}
