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

func onHead(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ soFar: UnsafePointer<ferry_result>) -> Int32 {
    guard let receiver = LoopContext.of(context)?.receiver else { return Int32(FERRY_CONTINUE) }
    var copy: UnsafeMutablePointer<ferry_result>?
    ferry_result_copy_head(soFar, &copy)
    guard let copy else { return Int32(FERRY_ABORT) }
    receiver.transfer(id, receivedHead: TransferResult(owning: copy))
    return Int32(FERRY_CONTINUE)
}

func onBody(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ bytes: UnsafeRawPointer, _ length: Int) -> Int32 {
    let chunk = UnsafeRawBufferPointer(start: bytes, count: length)
    switch LoopContext.of(context)?.receiver?.transfer(id, receivedChunk: chunk) {
    case .pause: return Int32(FERRY_PAUSE)
    case .proceed, nil: return Int32(FERRY_CONTINUE)
    }
}

func onWritten(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ bytes: UInt64) {
    LoopContext.of(context)?.receiver?.transfer(id, written: bytes)
}

func onPull(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ space: UnsafeMutableRawPointer, _ size: Int) -> Int64 {
    let space = UnsafeMutableRawBufferPointer(start: space, count: size)
    switch LoopContext.of(context)?.receiver?.transfer(id, fill: space) {
    case .bytes(let count): return Int64(count)
    case .piece(let piece):
        let raw = ferry_piece(offset: piece.offset, length: piece.length, fd: piece.descriptor)
        space.storeBytes(of: raw, as: ferry_piece.self)
        return Int64(FERRY_PIECE)
    case .end: return 0
    case .later: return Int64(FERRY_PAUSE)
    case .failed, nil: return Int64(FERRY_ABORT)
    }
}

func onCall(_ context: UnsafeMutableRawPointer?) {
    LoopContext.of(context)?.executor.run()
}

func onAlarm(_ context: UnsafeMutableRawPointer?) {
    LoopContext.of(context)?.clock.ring()
}

func onStopped(_ context: UnsafeMutableRawPointer?) {
    guard let context = LoopContext.of(context) else { return }
    context.executor.disconnect()
    context.clock.disconnect()
    context.released()
}
