/// What recent results say of a host, by scheme, name and port.
///
/// A host fails when it cannot be found or connected to, when TLS does not come about, when it breaks a connection or
/// lets time pass. Any whole answer, an error status included, shows that it is reachable. What is not the host's
/// doing, like a cancelled run, a full queue, a file that cannot be read, or what an adapter, an interceptor or the
/// refresh of a token throws, says nothing of it; nor does an answer of an interceptor's or of the cache's.
public enum HostHealth: Sendable, Hashable {
    /// Nothing was heard of it, or so long ago that others took its place.
    case unknown
    /// It answered the last time.
    case reachable(since: ContinuousClock.Instant)
    /// It did not.
    case failing(since: ContinuousClock.Instant, consecutiveFailures: Int, lastError: RequestError.Code)

    /// Whether it failed the last time.
    public var isFailing: Bool { if case .failing = self { true } else { false } }

    /// Whether it answered the last time.
    public var isReachable: Bool { if case .reachable = self { true } else { false } }
}

/// A host that has become reachable or failing.
public struct HostHealthChange: Sendable, Hashable {
    /// Scheme, host in lower case, and port unless it is the scheme's own: `http://h:8080`.
    public let host: String
    /// What it is now.
    public let health: HostHealth
}

/// The changes of all hosts of an agent, from the moment an iteration begins. Any number of them at once; each ends
/// when its task is cancelled or the agent is gone. One that does not keep up loses the oldest of more than 1,024
/// changes.
public struct HostHealthChanges: AsyncSequence, Sendable {
    /// A change.
    public typealias Element = HostHealthChange
    /// It does not fail.
    public typealias Failure = Never
    /// One iteration.
    public typealias AsyncIterator = AsyncStream<HostHealthChange>.Iterator

    let table: HostHealthTable

    /// Begins to listen.
    public func makeAsyncIterator() -> AsyncIterator { table.listen().makeAsyncIterator() }
}

extension NetworkAgent {
    /// How the host of this URL does, as the agent's recent runs say.
    public func health(of url: String) -> HostHealth { core.health.health(of: url) }

    /// How each of the hosts does that the agent talked to recently, 1,024 at most; by `scheme://host:port`.
    public var hostHealth: [String: HostHealth] { core.health.all }

    /// Changes of the health of hosts, from now on.
    public var hostHealthChanges: HostHealthChanges { core.health.changes }
}

/// What an error says of the host.
enum HostVerdict: Sendable, Equatable {
    /// It answered, if not as one would like.
    case answered
    /// It is not to be reached, or does not answer.
    case failed
    /// Nothing.
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
        // Files of our own, and waits in our own queue.
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

/// Those who wait for the elements of one source. It has no lock of its own: it lives in its owner's.
struct Listeners<Element: Sendable>: Sendable {
    private var continuations: [UInt64: AsyncStream<Element>.Continuation] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { continuations.count }

    mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> UInt64 {
        lastNumber += 1
        continuations[lastNumber] = continuation
        return lastNumber
    }

    /// The continuation is returned so that it is let go after the lock was left.
    mutating func remove(_ number: UInt64) -> AsyncStream<Element>.Continuation? {
        continuations.removeValue(forKey: number)
    }

    /// Called with the owner's lock held, so that all get the elements in the same order; it only queues them.
    func send(_ element: Element) {
        for continuation in continuations.values { continuation.yield(element) }
    }

    /// The source is gone: the iterations end when they have had what was queued.
    func finish() {
        for continuation in continuations.values { continuation.finish() }
    }
}

/// Scheme, host and port of a URL in one spelling, with nothing secret in it: what results and figures are kept by.
///
/// It names what the engine has joined already, and judges nothing: a text that is no URL has no key.
struct HostKey: Sendable, Hashable {
    /// `http://h`, `https://h:8443`
    let text: String

    /// Lower case, without user and password, and without a port that is the scheme's own.
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
        // A key has two slashes, one behind the other.
        text.utf8.lastIndex(of: 0x2F).map { String(text[text.index(after: $0)...]) } ?? ""
    }

    /// The part behind the scheme: `h`, `h:8443`. Empty where there would be no key.
    static func authority(of url: String) -> String {
        var url = url
        return url.withUTF8 { bytes in
            places(in: bytes).map { text(bytes[bytes.startIndex..<bytes.startIndex], bytes[$0.host]) } ?? ""
        }
    }

    /// Where the scheme stands, `://` included, and where host and port.
    private static func places(in url: UnsafeBufferPointer<UInt8>) -> (scheme: Range<Int>, host: Range<Int>)? {
        let length = prefixLength(UnsafeRawBufferPointer(url))
        guard let colon = url[..<length].firstIndex(of: 0x3A), colon + 3 < length else { return nil }
        let start = url[(colon + 3)..<length].lastIndex(of: 0x40).map { $0 + 1 } ?? colon + 3
        var host = url[start..<length]
        // Of the schemes that are carried only one has five letters; those of sockets have no port.
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

    /// Lower case, in one piece. Control characters, which no joined URL has, are escaped, so that a key cannot forge a
    /// line.
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

    /// Bytes up to the path: scheme, `://` and authority; 0 when it does not begin so.
    static func prefixLength(_ url: UnsafeRawBufferPointer) -> Int {
        var index = 0
        while index < url.count, url[index] != 0x3A {
            if index == 11 { return 0 }
            index += 1
        }
        guard index + 3 < url.count, url[index + 1] == 0x2F, url[index + 2] == 0x2F else { return 0 }
        index += 3
        // Eight bytes at a time, as every result of every run comes by here.
        while index + 8 <= url.count {
            let ends = endMarks(UInt64(littleEndian: url.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            if ends != 0 { return index + ends.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < url.count, endMarks(UInt64(url[index])) & 0x80 == 0 { index += 1 }
        return index
    }

    /// The highest bit of each byte that ends an authority: `/`, `?`, `#` and, as some take it for a slash, `\`. Right
    /// up to the first of them.
    @inline(__always)
    private static func endMarks(_ word: UInt64) -> UInt64 {
        zeroMarks(word ^ 0x2F2F_2F2F_2F2F_2F2F) | zeroMarks(word ^ 0x3F3F_3F3F_3F3F_3F3F)
            | zeroMarks(word ^ 0x2323_2323_2323_2323) | zeroMarks(word ^ 0x5C5C_5C5C_5C5C_5C5C)
    }

    @inline(__always)
    private static func zeroMarks(_ word: UInt64) -> UInt64 {
        (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
    }
}
