import Glibc

/// A TLS client over a `RawClient`, with the libssl that the server has loaded into the process: the functions are
/// found by name, so that tests need no module of their own.
///
/// `@unchecked Sendable` is true because every call is awaited before the next is made.
final class TLSClient: @unchecked Sendable {
    struct HandshakeError: Error {
        /// `X509_V_ERR_…`, 0 if the certificate was not the reason.
        var verifyResult: Int
    }

    private typealias Pointer = UnsafeMutableRawPointer
    private let raw: RawClient
    private let context: Pointer
    private let ssl: Pointer
    private(set) var sawGoodbye = false

    private static func find<Function>(_ name: String, _ type: Function.Type) -> Function {
        guard let symbol = dlsym(nil, name) ?? dlsym(dlopen("libssl.so.3", RTLD_NOW), name) else {
            fatalError("libssl has no \(name)")
        }
        return unsafeBitCast(symbol, to: type)
    }

    init(_ raw: RawClient, authorityFile: String, host: String, offering protocols: [String] = []) throws {
        self.raw = raw
        typealias Make = @convention(c) (Pointer?) -> Pointer?
        typealias Get = @convention(c) () -> Pointer?
        typealias Load = @convention(c) (Pointer?, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Int32
        typealias SetMode = @convention(c) (Pointer?, Int32, Pointer?) -> Void
        typealias SetText = @convention(c) (Pointer?, UnsafePointer<CChar>?) -> Int32
        typealias SetNumber = @convention(c) (Pointer?, Int32) -> Int32
        context = Self.find("SSL_CTX_new", Make.self)(Self.find("TLS_client_method", Get.self)())!
        _ = Self.find("SSL_CTX_load_verify_locations", Load.self)(context, authorityFile, nil)
        Self.find("SSL_CTX_set_verify", SetMode.self)(context, 1, nil)
        ssl = Self.find("SSL_new", Make.self)(context)!
        let parameters = Self.find("SSL_get0_param", Make.self)(ssl)
        let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
        let set = isAddress ? "X509_VERIFY_PARAM_set1_ip_asc" : "SSL_set1_host"
        _ = Self.find(set, SetText.self)(isAddress ? parameters : ssl, host)
        _ = Self.find("SSL_set_fd", SetNumber.self)(ssl, raw.descriptor)
        typealias SetBytes = @convention(c) (Pointer?, UnsafePointer<UInt8>?, UInt32) -> Int32
        let wire = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        if !wire.isEmpty { _ = Self.find("SSL_set_alpn_protos", SetBytes.self)(ssl, wire, UInt32(wire.count)) }
    }

    deinit {
        typealias Free = @convention(c) (Pointer?) -> Void
        Self.find("SSL_free", Free.self)(ssl)
        Self.find("SSL_CTX_free", Free.self)(context)
    }

    /// Calls libssl on a thread of its own. An error that an earlier call left in that thread's queue would be taken
    /// for one of this call (SSL_get_error(3)).
    private func calling<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await blocking {
            typealias Clear = @convention(c) () -> Void
            Self.find("ERR_clear_error", Clear.self)()
            return try body()
        }
    }

    func handshake() async throws {
        try await calling { [self] in
            typealias Call = @convention(c) (Pointer?) -> Int32
            typealias Result = @convention(c) (Pointer?) -> Int
            guard Self.find("SSL_connect", Call.self)(ssl) == 1 else {
                let reason = Self.find("SSL_get_verify_result", Result.self)(ssl)
                shutdown(raw.descriptor, Int32(SHUT_RDWR))
                throw HandshakeError(verifyResult: reason)
            }
        }
    }

    /// The protocol chosen by ALPN; nil without.
    var agreedProtocol: String? {
        typealias Get = @convention(c) (Pointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Pointer?) -> Void
        var bytes: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        Self.find("SSL_get0_alpn_selected", Get.self)(ssl, &bytes, &length)
        return bytes.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(length)), as: UTF8.self) }
    }

    func send(_ bytes: [UInt8]) async throws {
        try await calling { [self] in
            typealias Write = @convention(c) (Pointer?, UnsafeRawPointer?, Int32) -> Int32
            guard Self.find("SSL_write", Write.self)(ssl, bytes, Int32(bytes.count)) == bytes.count else {
                throw SocketError("SSL_write")
            }
        }
    }

    /// Up to `limit` bytes; empty after close_notify, an error after a bare FIN.
    func receive(_ limit: Int) async throws -> [UInt8] {
        try await calling { [self] in
            typealias Read = @convention(c) (Pointer?, Pointer?, Int32) -> Int32
            typealias Call = @convention(c) (Pointer?, Int32) -> Int32
            var bytes = [UInt8](repeating: 0, count: limit)
            let count = Self.find("SSL_read", Read.self)(ssl, &bytes, Int32(limit))
            if count <= 0 {
                sawGoodbye = Self.find("SSL_get_error", Call.self)(ssl, count) == 6
                guard sawGoodbye else { throw SocketError("SSL_read") }
            }
            return Array(bytes.prefix(Int(max(count, 0))))
        }
    }

    func receive(exactly count: Int) async throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            let more = try await receive(count - all.count)
            guard !more.isEmpty else { throw SocketError("SSL_read: end") }
            all += more
        }
        return all
    }

    func readResponse() async throws -> RawResponse {
        try await RawResponse.read(toHead: false) {
            try await self.receive(exactly: $0)
        } all: {
            var all: [UInt8] = []
            while case let more = try await self.receive(65_536), !more.isEmpty { all += more }
            return all
        }
    }

    func get(_ target: String) async throws -> RawResponse {
        try await send(Array("GET \(target) HTTP/1.1\r\nHost: test\r\n\r\n".utf8))
        return try await readResponse()
    }
}
