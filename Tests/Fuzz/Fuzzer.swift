import Glibc

/// The target that the environment names.
private let target: FuzzTarget = {
    guard let name = getenv("FUZZ"), let target = FuzzTarget(rawValue: String(cString: name)) else {
        fatalError("FUZZ is one of \(FuzzTarget.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return target
}()

/// libFuzzer calls this with each input. A failure ends the process: an error of the sanitizer, or a property that does
/// not hold.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        try target.check(UnsafeRawBufferPointer(start: start, count: count))
    } catch {
        fatalError("\(error)")
    }
    return 0
}
