internal import Chiredis

/// The reply to one command, built by hiredis's parser while the bytes arrive.
///
/// Sendable because it does not change after the parser has returned it.
final class RedisReply: @unchecked Sendable {
    enum Kind { case status, error, integer, bytes, null, array }

    let kind: Kind
    let bytes: [UInt8]
    let integer: Int64
    private(set) var elements: [RedisReply] = []

    fileprivate init(_ kind: Kind, bytes: [UInt8] = [], integer: Int64 = 0) {
        (self.kind, self.bytes, self.integer) = (kind, bytes, integer)
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The first word of an error, like `WRONGTYPE`.
    var errorWord: String? {
        kind == .error ? String(decoding: bytes.prefix { $0 != 0x20 }, as: UTF8.self) : nil
    }

    /// Takes ownership of a reply from the parser.
    static func take(_ pointer: UnsafeMutableRawPointer) -> RedisReply {
        Unmanaged<RedisReply>.fromOpaque(pointer).takeRetainedValue()
    }

    static func free(_ pointer: UnsafeMutableRawPointer) { _ = take(pointer) }

    /// The maximum number of elements of an array; no command used here returns more. hiredis's own functions would
    /// allocate as many as Redis announces.
    private static let mostElements = 100_000

    /// The parser calls these functions for each object. An object in an array belongs to the array; the outermost one
    /// belongs to whoever takes or frees it. A null pointer ends the parsing.
    static let functions = Functions()

    /// Sendable because it is only read, and never freed.
    struct Functions: @unchecked Sendable {
        let pointer = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)

        fileprivate init() {
            // Those that only hiredis 1.x has refuse types that no Redis sends to this client.
            pointer.initialize(to: refusing_functions())
            pointer.pointee.createString = { task, start, count in
                guard let task else { return nil }
                let kind: Kind =
                    switch task.pointee.type {
                    case REDIS_REPLY_ERROR: .error
                    case REDIS_REPLY_STATUS: .status
                    default: .bytes
                    }
                let bytes = Array(UnsafeRawBufferPointer(start: start, count: count))
                return RedisReply(kind, bytes: bytes).handed(to: task)
            }
            // The number is an `int`, and a `size_t` since 1.0.
            pointer.pointee.createArray = { task, count in
                guard let task, Int(clamping: count) <= RedisReply.mostElements else { return nil }
                return RedisReply(.array).handed(to: task)
            }
            pointer.pointee.createInteger = { task, number in
                task.flatMap { RedisReply(.integer, integer: Int64(number)).handed(to: $0) }
            }
            pointer.pointee.createNil = { task in task.flatMap { RedisReply(.null).handed(to: $0) } }
            pointer.pointee.freeObject = { pointer in if let pointer { RedisReply.free(pointer) } }
        }
    }

    private func handed(to task: UnsafePointer<redisReadTask>) -> UnsafeMutableRawPointer? {
        guard let outer = task.pointee.parent else { return Unmanaged.passRetained(self).toOpaque() }
        guard let array = outer.pointee.obj else { return nil }
        Unmanaged<RedisReply>.fromOpaque(array).takeUnretainedValue().elements.append(self)
        return Unmanaged.passUnretained(self).toOpaque()
    }
}
