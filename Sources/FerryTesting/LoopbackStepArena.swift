internal import CLoopback

/// Lays the steps of a script out for C: all their bytes in one array, so that pointers into it hold together.
struct LoopbackStepArena {
    private var bytes: [UInt8] = []
    private var steps: [(step: loopback_step, offset: Int)] = []

    mutating func add(_ step: LoopbackScript.Step) {
        switch step {
        case .expectHead: add(LOOPBACK_EXPECT_HEAD)
        case .expectBody: add(LOOPBACK_EXPECT_BODY)
        case .expectBytes(let count): add(LOOPBACK_EXPECT_BYTES, count: count)
        case .expectClose: add(LOOPBACK_EXPECT_CLOSE)
        case .send(let text): add(LOOPBACK_SEND, Array(text.utf8), count: 1)
        case .sendBytes(let bytes): add(LOOPBACK_SEND, bytes, count: 1)
        case .repeating(let text, let times): add(LOOPBACK_SEND, Array(text.utf8), count: times)
        case .repeatingBytes(let bytes, let times): add(LOOPBACK_SEND, bytes, count: times)
        case .pattern(let count): add(LOOPBACK_PATTERN, count: count)
        case .drip(let text, let interval, let chunk):
            add(LOOPBACK_DRIP, Array(text.utf8), count: chunk, time: interval)
        case .pause(let time): add(LOOPBACK_PAUSE, time: time)
        case .wait(let name): add(LOOPBACK_WAIT, Array(name.utf8))
        case .mark(let name): add(LOOPBACK_MARK, Array(name.utf8))
        case .close: add(LOOPBACK_CLOSE)
        case .drop: add(LOOPBACK_DROP)
        case .reset: add(LOOPBACK_RESET)
        case .halfClose: add(LOOPBACK_HALF_CLOSE)
        case .stopReading: add(LOOPBACK_STOP_READING)
        case .keepOpen: add(LOOPBACK_KEEP_OPEN)
        case .serve: add(LOOPBACK_SERVE)
        case .restart: add(LOOPBACK_RESTART)
        case .startTLS: add(LOOPBACK_START_TLS)
        case .plain: add(LOOPBACK_PLAIN)
        case .stallHandshake: add(LOOPBACK_STALL_HANDSHAKE)
        case .closeHandshake: add(LOOPBACK_CLOSE_HANDSHAKE)
        }
    }

    private mutating func add(_ kind: Int, _ content: [UInt8] = [], count: Int = 0, time: Duration = .zero) {
        var step = loopback_step()
        step.kind = Int32(kind)
        step.length = content.count
        step.count = UInt64(clamping: count)
        step.milliseconds = time.wholeMilliseconds
        steps.append((step, bytes.count))
        bytes += content
    }

    /// The steps with their pointers, which hold while `body` runs.
    func withSteps(_ body: (UnsafeBufferPointer<loopback_step>) -> Void) {
        bytes.withUnsafeBytes { all in
            let laid = steps.map { item in
                var step = item.step
                step.bytes = all.baseAddress.map { $0 + item.offset }
                return step
            }
            laid.withUnsafeBufferPointer(body)
        }
    }
}
