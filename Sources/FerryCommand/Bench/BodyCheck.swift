internal import Ferry
internal import FerrySynchronization
internal import Glibc

/// Detects wrong bodies. Thread-safe.
final class BodyCheck: Sendable {
    enum Rule: Sendable, Equatable {
        /// Equal to the first body.
        case likeFirst
        /// With this SHA-256, in 64 lower-case hexadecimal digits.
        case digest(String)
        /// Bodies are not compared.
        case none
    }

    private let rule: Rule
    private let first = Mutex<Response?>(nil)

    init(_ rule: Rule) { self.rule = rule }

    func isRight(_ response: Response) -> Bool {
        switch rule {
        case .none: return true
        case .digest(let expected): return response.withBytes { SHA256.hexadecimal(of: $0) } == expected
        case .likeFirst:
            let first = first.withLock { first in
                if first == nil { first = response }
                return first
            }
            guard let first else { return true }
            return first.withBytes { first in response.withBytes { Self.areEqual(first, $0) } }
        }
    }

    private static func areEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        if one.count != other.count { return false }
        guard let one = one.baseAddress, let start = other.baseAddress else { return true }
        return memcmp(one, start, other.count) == 0
    }
}

extension BodyCheck.Rule {
    init(_ arguments: ParsedArguments) throws(UsageError) {
        guard let text = arguments.last("expect-sha256") else {
            self = arguments.has("any-body") ? .none : .likeFirst
            return
        }
        if arguments.has("any-body") { throw UsageError("--expect-sha256 and --any-body cannot be combined") }
        guard SHA256.isHexadecimal(text) else {
            throw UsageError("--expect-sha256 must be 64 hexadecimal digits, not '\(text)'")
        }
        self = .digest(text.lowercased())
    }
}
