import Glibc

/// The health of a host (scheme, name and port), according to recent runs.
///
/// A host fails if its name cannot be resolved, it cannot be connected to, the TLS handshake fails, it breaks a
/// connection, a body ends early, or it does not respond in time. Any other response shows that it is reachable, also
/// one with an error status, one that is invalid or damaged, and one that is too large. Everything else does not count:
/// a cancelled run, a full queue, a file that cannot be read, an error thrown by an adapter, an interceptor or a token
/// refresh, and a response of an interceptor or of the cache.
public enum HostHealth: Sendable, Hashable {
    /// There is no recent result for the host.
    case unknown
    /// The last run got a response.
    case reachable(since: ContinuousClock.Instant)
    /// The last run failed.
    case failing(since: ContinuousClock.Instant, consecutiveFailures: Int, lastError: RequestError.Code)

    /// Whether the last run failed.
    public var isFailing: Bool { if case .failing = self { true } else { false } }

    /// Whether the last run got a response.
    public var isReachable: Bool { if case .reachable = self { true } else { false } }
}

/// A host that has become reachable or failing.
public struct HostHealthChange: Sendable, Hashable {
    /// Scheme, host in lower case, and port unless it is the scheme's default: `http://h:8080`.
    public let host: String
    /// The new health.
    public let health: HostHealth
}

/// The changes of all hosts of an agent, from the start of the iteration. There can be any number of iterations; each
/// ends when its task is cancelled or the agent no longer exists. A slow iteration loses the oldest changes beyond
/// 1,024.
public struct HostHealthChanges: AsyncSequence, Sendable {
    /// A change.
    public typealias Element = HostHealthChange
    /// The sequence does not throw.
    public typealias Failure = Never
    /// The iterator.
    public typealias AsyncIterator = AsyncStream<HostHealthChange>.Iterator

    let table: HostHealthTable

    /// Starts an iteration.
    public func makeAsyncIterator() -> AsyncIterator { table.listen().makeAsyncIterator() }
}

extension NetworkAgent {
    /// The health of the host of this URL, according to the agent's recent runs.
    public func health(of url: String) -> HostHealth { core.health.health(of: url) }

    /// The health of all recently used hosts, at most 768, by `scheme://host`, with the port unless it is the scheme's
    /// default.
    public var hostHealth: [String: HostHealth] { core.health.all }

    /// The changes of the health of hosts, from the start of each iteration.
    public var hostHealthChanges: HostHealthChanges { core.health.changes }
}

/// What an error says about the host.
enum HostVerdict: Sendable, Equatable {
    /// It responded, even if with an error.
    case answered
    /// It cannot be reached, or does not respond.
    case failed
    /// It says nothing about the host.
    case nothing

    init(_ error: RequestError) {
        if error.facts.isOfApplication {
            self = .nothing
            return
        }
        if error.phase == .processing, error.code != .cancelled, error.code != .shutdown {
            self = .answered
            return
        }
        switch error.code {
        // Files of this machine, and waits in the agent's own queue.
        case .tls(.configuration): self = .nothing
        case .timeout where error.phase == .preparing || error.phase == .queued: self = .nothing
        case .dns, .connect, .tls, .timeout, .connectionReset, .connectionClosed, .incompleteBody: self = .failed
        case .malformedResponse, .headersTooLarge, .responseTooLarge, .contentDecoding, .http2Stream,
            .tooManyRedirects, .redirectForbidden, .resumeMismatch:
            self = .answered
        default: self = .nothing
        }
    }
}

/// The iterations over one source. It has no lock of its own, because it lives in its owner's.
struct Listeners<Element: Sendable>: Sendable {
    private var continuations: [UInt64: AsyncStream<Element>.Continuation] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { continuations.count }

    mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> UInt64 {
        lastNumber += 1
        continuations[lastNumber] = continuation
        return lastNumber
    }

    /// Returns the continuation, so that it is released after the lock.
    mutating func remove(_ number: UInt64) -> AsyncStream<Element>.Continuation? {
        continuations.removeValue(forKey: number)
    }

    /// Called with the owner's lock held, so that all iterations get the elements in the same order; it only queues
    /// them.
    func send(_ element: Element) {
        for continuation in continuations.values { continuation.yield(element) }
    }

    /// The source no longer exists: the iterations end after the queued elements.
    func finish() {
        for continuation in continuations.values { continuation.finish() }
    }
}

/// Scheme, host and port of a URL in one spelling and without secrets: the key for results and figures.
///
/// It is derived from URLs that the engine has already joined, without checks: a text that is not a URL has no key.
struct HostKey: Sendable, Hashable {
    /// `http://h`, `https://h:8443`
    let text: String

    /// In lower case, without user and password, and without the scheme's default port.
    init?(url: String) {
        var url = url
        let made: String? = url.withUTF8 { bytes in
            Self.places(in: bytes).map { Self.text(bytes[$0.scheme], bytes[$0.host]) }
        }
        guard let made else { return nil }
        text = made
    }

    /// `h`, `h:8443`
    var authority: String {
        // A key has two consecutive slashes.
        text.utf8.lastIndex(of: 0x2F).map { String(text[text.index(after: $0)...]) } ?? ""
    }

    /// The part after the scheme, `h` or `h:8443`; empty if there is no key.
    static func authority(of url: String) -> String {
        var url = url
        return url.withUTF8 { bytes in
            places(in: bytes).map { text(bytes[bytes.startIndex..<bytes.startIndex], bytes[$0.host]) } ?? ""
        }
    }

    /// Whether the scheme is `https`, in any case.
    static func isSecure(_ url: String) -> Bool {
        url.utf8.prefix(6).elementsEqual("https:".utf8) { $0 | 0x20 == $1 }
    }

    /// Whether scheme, host and port of a URL are spelled like this: `https://h:8443`.
    static func begins(_ url: String, with origin: String) -> Bool {
        let begins = url.utf8.withContiguousStorageIfAvailable { url in
            origin.utf8.withContiguousStorageIfAvailable { origin in
                guard let start = url.baseAddress, let other = origin.baseAddress, !origin.isEmpty,
                    url.count >= origin.count, memcmp(start, other, origin.count) == 0
                else { return false }
                if url.count == origin.count { return true }
                let next = url[origin.count]
                return next == 0x2F || next == 0x3F || next == 0x23
            }
        }
        return (begins ?? false) ?? false
    }

    /// The ranges of the scheme, including `://`, and of host and port.
    private static func places(in url: UnsafeBufferPointer<UInt8>) -> (scheme: Range<Int>, host: Range<Int>)? {
        let length = prefixLength(UnsafeRawBufferPointer(url))
        guard let colon = url[..<length].firstIndex(of: 0x3A), colon + 3 < length else { return nil }
        let start = url[(colon + 3)..<length].lastIndex(of: 0x40).map { $0 + 1 } ?? colon + 3
        var host = url[start..<length]
        // Only `https` has five letters; the schemes for sockets have no port.
        let ownPort: StaticString = colon == 5 ? ":443" : ":80"
        let hasOwnPort = ownPort.withUTF8Buffer { host.suffix($0.count).elementsEqual($0) }
        if hasOwnPort {
            host = host.dropLast(ownPort.utf8CodeUnitCount)
        } else if host.last == 0x3A {
            host = host.dropLast()
        }
        if host.isEmpty || host.first == 0x3A { return nil }
        return (0..<(colon + 3), host.startIndex..<host.endIndex)
    }

    /// In lower case, in one piece. Control characters, which no joined URL contains, are escaped, so that a key cannot
    /// forge a log line.
    private static func text(
        _ scheme: Slice<UnsafeBufferPointer<UInt8>>, _ host: Slice<UnsafeBufferPointer<UInt8>>
    ) -> String {
        if scheme.contains(where: isControl) || host.contains(where: isControl) {
            var made: [UInt8] = []
            for part in [scheme, host] {
                for byte in part {
                    if isControl(byte) { made.appendEscaped(byte) } else { made.append(lowercased(byte)) }
                }
            }
            return String(decoding: made, as: UTF8.self)
        }
        return String(unsafeUninitializedCapacity: scheme.count + host.count) { buffer in
            var index = 0
            for byte in scheme {
                buffer[index] = lowercased(byte)
                index += 1
            }
            for byte in host {
                buffer[index] = lowercased(byte)
                index += 1
            }
            return index
        }
    }
}
