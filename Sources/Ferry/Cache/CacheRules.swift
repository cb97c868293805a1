import FerryCache
import FerryTransport

/// What the head of an answer says about keeping it (RFC 9111, 5.2.2; RFC 9110, 12.5.5).
struct CacheRules {
    private(set) var forbidsStoring = false
    /// `private`, or a cookie: it is meant for one user.
    private(set) var isPersonal = false
    private(set) var setsCookies = false
    private(set) var variesByAnything = false
    /// Lower case, each once. Codings that are undone before the answer is kept do not count; one that is not is only
    /// for those who ask for it, whatever the server says.
    private(set) var varying: [String] = []

    init(_ result: TransferResult) {
        var isCoded = false
        for index in 0..<result.headerCount {
            result.withHeader(index) { name, value in
                switch name.count {
                case 4 where name.equals("vary"): readVary(value)
                case 10 where name.equals("set-cookie"), 11 where name.equals("set-cookie2"):
                    (setsCookies, isPersonal) = (true, true)
                case 13 where name.equals("cache-control"): readDirectives(value)
                case 16 where name.equals("content-encoding"):
                    if Self.words(value).contains(where: { !$0.isEmpty && $0 != "identity" }) { isCoded = true }
                default: break
                }
            }
        }
        if isCoded && !result.isDecoded { varying.append("accept-encoding") }
    }

    private mutating func readVary(_ value: UnsafeRawBufferPointer) {
        for name in Self.words(value) {
            if name == "*" { variesByAnything = true }
            if name != "accept-encoding", !varying.contains(name) { varying.append(name) }
        }
    }

    private mutating func readDirectives(_ value: UnsafeRawBufferPointer) {
        for word in Self.words(value) {
            let name = word.prefix { $0 != "=" }
            if name == "no-store" { forbidsStoring = true }
            if name == "private" { isPersonal = true }
        }
    }

    /// Whether a request forbids to keep its answer.
    static func forbidsStoring(_ directives: String) -> Bool {
        Array(directives.utf8).withUnsafeBytes { words($0).contains { $0.prefix { $0 != "=" } == "no-store" } }
    }

    private static func words(_ value: UnsafeRawBufferPointer) -> [String] {
        value.split(separator: 0x2C).map { word in
            let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
            let bare = word.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
            return String(decoding: bare.map(lowercased), as: UTF8.self)
        }
    }

    /// Status line and fields as they are kept: without cookies, which were set once and for one.
    static func keptHead(_ result: TransferResult) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(512)
        head.append(
            contentsOf: "HTTP/\(result.httpVersion == 20 ? "2" : result.httpVersion == 10 ? "1.0" : "1.1") ".utf8)
        head.append(contentsOf: "\(result.status) \r\n".utf8)
        for index in 0..<result.headerCount {
            result.withHeader(index) { name, value in
                if name.equals("set-cookie") || name.equals("set-cookie2") { return }
                head.append(contentsOf: name)
                head.append(contentsOf: [0x3A, 0x20])
                head.append(contentsOf: value)
                head.append(contentsOf: [0x0D, 0x0A])
            }
        }
        head.append(contentsOf: [0x0D, 0x0A])
        return head
    }
}

extension UnsafeRawBufferPointer {
    /// Compares with a name in lower case.
    fileprivate func equals(_ name: StaticString) -> Bool {
        guard count == name.utf8CodeUnitCount else { return false }
        for index in 0..<count where lowercased(self[index]) != name.utf8Start[index] { return false }
        return true
    }
}
