internal import CFerry

// The core's callbacks. File-scope functions, as a closure written where the compiler infers an actor would trap when C
// calls it. All run on the loop's thread.

func onFinished(_ context: UnsafeMutableRawPointer?, _ first: UnsafeMutablePointer<ferry_result>, _ count: Int) {
    var results: [TransferResult] = []
    results.reserveCapacity(count)
    var next: UnsafeMutablePointer<ferry_result>? = first
    while let raw = next {
        next = raw.pointee.next
        results.append(TransferResult(owning: raw))
    }
    LoopContext.of(context)?.receiver?.transfersFinished(results)
}

func onStarted(_ context: UnsafeMutableRawPointer?, _ id: UInt64) {
    LoopContext.of(context)?.receiver?.transferStarted(id)
}

func onHead(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ soFar: UnsafePointer<ferry_result>) {
    LoopContext.of(context)?.receiver?.transfer(id, receivedHead: TransferHead(copying: soFar.pointee))
}

func onBody(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ bytes: UnsafeRawPointer, _ length: Int) -> Int32 {
    let chunk = UnsafeRawBufferPointer(start: bytes, count: length)
    switch LoopContext.of(context)?.receiver?.transfer(id, receivedChunk: chunk) {
    case .pause: return Int32(FERRY_PAUSE)
    case .proceed, nil: return Int32(FERRY_CONTINUE)
    }
}

func onPull(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ space: UnsafeMutableRawPointer, _ size: Int) -> Int64 {
    let space = UnsafeMutableRawBufferPointer(start: space, count: size)
    switch LoopContext.of(context)?.receiver?.transfer(id, fill: space) {
    case .bytes(let count): return Int64(count)
    case .end: return 0
    case .later: return Int64(FERRY_PAUSE)
    case .failed, nil: return Int64(FERRY_ABORT)
    }
}

func onCall(_ context: UnsafeMutableRawPointer?) {
    LoopContext.of(context)?.executor.run()
}

func onStopped(_ context: UnsafeMutableRawPointer?) {
    guard let context = LoopContext.of(context) else { return }
    context.executor.disconnect()
    context.released()
}

extension TransferHead {
    /// Copies what lives only as long as the callback.
    init(copying raw: ferry_result) {
        var headers: [(name: String, value: String)] = []
        if let fields = raw.fields, let head = raw.head {
            headers.reserveCapacity(Int(raw.field_count))
            let bytes = UnsafeRawBufferPointer(start: head, count: Int(raw.head_length))
            for field in UnsafeBufferPointer(start: fields, count: Int(raw.field_count)) {
                let name = bytes[Int(field.name)..<Int(field.name) + Int(field.name_length)]
                let value = bytes[Int(field.value)..<Int(field.value) + Int(field.value_length)]
                headers.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
            }
        }
        self.init(
            status: Int(raw.status), httpVersion: Int(raw.http_version),
            contentLength: raw.content_length < 0 ? nil : raw.content_length, headers: headers)
    }
}
