import CAllocations
import CFerry

// The core's callbacks, and how a `CoreRecord` passes through C: the loop holds one reference, taken before it starts
// and released by on_stopped, the last callback, or when `ferry_loop_start` fails. There is no other Unmanaged in these
// tests.

func coreContext(_ record: CoreRecord) -> UnsafeMutableRawPointer {
    Unmanaged.passRetained(record).toOpaque()
}

func releaseCoreContext(_ context: UnsafeMutableRawPointer) {
    Unmanaged<CoreRecord>.fromOpaque(context).release()
}

private func record(_ context: UnsafeMutableRawPointer?) -> CoreRecord {
    guard let context else { preconditionFailure("a callback without its context") }
    return Unmanaged<CoreRecord>.fromOpaque(context).takeUnretainedValue()
}

func coreOnFinished(_ context: UnsafeMutableRawPointer?, _ first: UnsafeMutablePointer<ferry_result>, _ count: Int) {
    var next: UnsafeMutablePointer<ferry_result>? = first
    var found = 0
    while let raw = next {
        next = raw.pointee.next
        found += 1
        if record(context).keepsResults {
            let kept = KeptResult(raw: raw)
            record(context).change { $0.kept.append(kept) }
            continue
        }
        let result = CoreResult(copying: raw.pointee)
        ferry_result_free(raw)
        record(context).finished(result)
    }
    precondition(found == count, "a list of \(found) results that says \(count)")
}

func coreOnStarted(_ context: UnsafeMutableRawPointer?, _ id: UInt64) {
    record(context).started(id)
}

func coreOnHead(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ soFar: UnsafePointer<ferry_result>) -> Int32 {
    record(context).head(id, CoreResult(copying: soFar.pointee))
    return Int32(FERRY_CONTINUE)
}

func coreOnBody(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ bytes: UnsafeRawPointer, _ length: Int) -> Int32 {
    Int32(record(context).body(id, Array(UnsafeRawBufferPointer(start: bytes, count: length))))
}

func coreOnInformational(
    _ context: UnsafeMutableRawPointer?, _ id: UInt64, _ head: UnsafePointer<CChar>, _ length: Int
) {
    record(context).tell(id, .informational(text(head, length)))
}

func coreOnAnswered(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ soFar: UnsafePointer<ferry_result>) {
    record(context).tell(id, .answered(text(soFar.pointee.trailers, Int(soFar.pointee.trailers_length))))
}

private func text(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : length), as: UTF8.self)
}

func coreOnTrailers(
    _ context: UnsafeMutableRawPointer?, _ id: UInt64, _ space: UnsafeMutablePointer<CChar>, _ size: Int
) -> Int64 {
    Int64(record(context).trailers(id, UnsafeMutableRawBufferPointer(start: space, count: size)))
}

func coreOnWritten(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ bytes: UInt64) {
    record(context).change { $0.written[id, default: []].append(bytes) }
}

func coreOnPull(
    _ context: UnsafeMutableRawPointer?, _ id: UInt64, _ space: UnsafeMutableRawPointer, _ size: Int
) -> Int64 {
    Int64(record(context).pull(id, UnsafeMutableRawBufferPointer(start: space, count: size)))
}

func coreOnCall(_ context: UnsafeMutableRawPointer?) {
    let allocations = allocations_of_thread()
    record(context).change {
        $0.calls += 1
        $0.allocations = allocations
    }
}

func coreOnStopped(_ context: UnsafeMutableRawPointer?) {
    record(context).stopped()
    if let context { releaseCoreContext(context) }
}
