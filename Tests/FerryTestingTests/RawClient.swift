import Dispatch
import Glibc

struct SocketError: Error, CustomStringConvertible {
    var call: String
    var number: Int32
    var description: String { "\(call): \(String(cString: strerror(number)))" }

    init(_ call: String) {
        self.call = call
        number = errno
    }
}

/// Runs a blocking call on a thread of its own, so that the tasks of handlers keep theirs. A new serial queue gets a
/// thread at once. The global queues get theirs slowly once some are blocked, one a second.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue(label: "blocking").async { continuation.resume(with: Result(catching: body)) }
    }
}

/// A TCP client that tests control byte by byte. Every call gives up after ten seconds.
final class RawClient: Sendable {
    let descriptor: Int32

    init(port: UInt16, address: String = "127.0.0.1", receiveBuffer: Int32? = nil) throws {
        let isIPv6 = address.contains(":")
        descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw SocketError("socket") }
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var size = receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4) }
        let result: Int32
        if isIPv6 {
            var to = sockaddr_in6()
            to.sin6_family = sa_family_t(AF_INET6)
            to.sin6_port = port.bigEndian
            inet_pton(AF_INET6, address, &to.sin6_addr)
            result = withUnsafePointer(to: &to) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        } else {
            var to = sockaddr_in()
            to.sin_family = sa_family_t(AF_INET)
            to.sin_port = port.bigEndian
            inet_pton(AF_INET, address, &to.sin_addr)
            result = withUnsafePointer(to: &to) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        guard result == 0 else {
            let error = SocketError("connect")
            close(descriptor)
            throw error
        }
    }

    deinit {
        close(descriptor)
    }

    func send(_ text: String) async throws {
        try await send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) async throws {
        try await blocking { [descriptor] in
            var sent = 0
            while sent < bytes.count {
                let count = bytes.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
                }
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { throw SocketError("send") }
                sent += count
            }
        }
    }

    /// Up to `limit` bytes as they arrive; empty at the end.
    func receive(_ limit: Int = 65_536) async throws -> [UInt8] {
        try await blocking { [descriptor] in
            var bytes = [UInt8](repeating: 0, count: limit)
            var count = -1
            // In a process that was stopped and continues, a call with a time limit is interrupted.
            repeat { count = recv(descriptor, &bytes, limit, 0) } while count < 0 && errno == EINTR
            guard count >= 0 else { throw SocketError("recv") }
            return Array(bytes.prefix(count))
        }
    }

    /// Exactly this many bytes.
    func receive(exactly count: Int) async throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            let more = try await receive(count - all.count)
            guard !more.isEmpty else { throw SocketError("recv: end after \(all.count) of \(count)") }
            all += more
        }
        return all
    }

    /// Everything up to FIN.
    func receiveAll() async throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let more = try await receive()
            if more.isEmpty { return all }
            all += more
        }
    }

    func endSending() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    func readResponse(toHead: Bool = false) async throws -> RawResponse {
        try await RawResponse.read(toHead: toHead) {
            try await self.receive(exactly: $0)
        } all: {
            try await self.receiveAll()
        }
    }

    /// Sends one request on this connection and returns its response.
    func exchange(_ request: String, toHead: Bool = false) async throws -> RawResponse {
        try await send(request)
        return try await readResponse(toHead: toHead)
    }

    func get(_ target: String, _ fields: String = "") async throws -> RawResponse {
        try await exchange("GET \(target) HTTP/1.1\r\nHost: test\r\n\(fields)\r\n")
    }
}

/// A response without its framing.
struct RawResponse: Sendable {
    var statusLine: String
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []

    var status: Int { Int(statusLine.split(separator: " ")[1]) ?? 0 }
    var text: String { String(decoding: body, as: UTF8.self) }

    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    static func read(
        toHead: Bool, take: (Int) async throws -> [UInt8], all: () async throws -> [UInt8]
    ) async throws -> RawResponse {
        func line() async throws -> String {
            var bytes: [UInt8] = []
            while true {
                let byte = try await take(1)[0]
                if byte == UInt8(ascii: "\n") { break }
                bytes.append(byte)
            }
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
            return String(decoding: bytes, as: UTF8.self)
        }
        var response = RawResponse(statusLine: try await line())
        while true {
            let field = try await line()
            guard let colon = field.firstIndex(of: ":") else { break }
            let value = field[field.index(after: colon)...].drop { $0 == " " }
            response.fields.append((String(field[..<colon]), String(value)))
        }
        let status = response.status
        if toHead || status < 200 || status == 204 || status == 304 { return response }
        if response["Transfer-Encoding"] == "chunked" {
            while let size = Int(try await line(), radix: 16) {
                response.body += size == 0 ? [] : try await take(size)
                _ = try await line()
                if size == 0 { break }
            }
        } else if let length = response["Content-Length"].flatMap({ Int($0) }) {
            response.body = length == 0 ? [] : try await take(length)
        } else {
            response.body = try await all()
        }
        return response
    }
}

/// The number of open descriptors of this process.
func openDescriptors() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count
}

/// Raises the limit to a thousand connections, with both ends in this process.
func raiseDescriptorLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
