import FerryTransport
import Synchronization

/// Pumps a sequence into a pipe by a task, from the first time that bytes are wanted.
final class StreamSource: BodySource {
    /// Writes the whole sequence into the pipe.
    typealias Pump = @Sendable (BytePipe) async throws -> Void

    private enum Life {
        case unread
        case pumping(Task<Void, Never>)
        case closed
    }

    let length: UInt64?
    private let pipe: BytePipe
    private let pump: Pump
    private let whenUnread: (@Sendable () -> Void)?
    private let life = Mutex(Life.unread)

    /// `whenUnread` is called when it ends without having been asked for a byte.
    init(length: UInt64?, whenUnread: (@Sendable () -> Void)? = nil, _ pump: @escaping Pump) {
        self.length = length
        self.pump = pump
        self.whenUnread = whenUnread
        pipe = BytePipe(announced: length)
    }

    deinit { close() }

    var failure: (any Error)? { pipe.failure }

    func open(resume: @escaping @Sendable () -> Void) { pipe.open(resume: resume) }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        life.withLock { life in
            guard case .unread = life else { return }
            life = .pumping(
                Task { [pipe, pump] in
                    do {
                        try await pump(pipe)
                        pipe.finish()
                    } catch {
                        pipe.fail(error)
                    }
                })
        }
        return pipe.read(into: space)
    }

    func close() {
        let before = life.withLock { life in
            defer { life = .closed }
            return life
        }
        pipe.close()
        switch before {
        case .unread: whenUnread?()
        case .pumping(let task): task.cancel()
        case .closed: break
        }
    }

    /// More than a length on the wire can be.
    static func check(_ length: UInt64?) throws(BodyFault) {
        if let length, length > UInt64(Int64.max) {
            throw BodyFault(code: .invalidRequest(.body), message: "no body has \(length) bytes")
        }
    }
}
