// The module that signal sets belong to depends on how the target is built.
internal import COpenSSL
internal import Chiredis
internal import FerryCache
internal import Glibc

/// TLS on the socket of one connection, by OpenSSL. It is used by one thread at a time, like its connection.
final class RedisTLS {
    private let session: OpaquePointer
    /// Whether the last write can continue only when something has been received.
    private(set) var waitsForInput = false
    /// The number of bytes that had arrived with the last data.
    private var usefulCount: UInt64 = 0

    /// More than any record, and than any handshake. A server that sends so much without data, for example only
    /// KeyUpdate messages (RFC 8446, 4.6.3), is not a Redis.
    private static let mostUseless: UInt64 = 256 << 10
    /// What is sent in one call; then other connections get their turn.
    private static let mostSent = 256 << 10
    /// The maximum size of the data in a record (RFC 8446, 5.1).
    private static let recordBytes = 16_384

    /// Performs the handshake on a socket that does not block, and blocks until it is done, or until a time.
    init(_ options: RedisConfiguration.TLS, host: String, descriptor: Int32, until end: UInt64) throws(RedisFault) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        session = try Self.session(options)
        guard SSL_set_fd(session, descriptor) == 1, Self.setName(options, host, session) else {
            throw RedisFault(.tls, Self.reason)
        }
        try handshake(descriptor, until: end)
        usefulCount = arrivedCount
    }

    // Redis does not miss the alert that announces the end, which would be one more write.
    deinit { SSL_free(session) }

    // MARK: Setting up

    /// A session with the current content of the files.
    private static func session(_ options: RedisConfiguration.TLS) throws(RedisFault) -> OpaquePointer {
        guard let context = make_client() else { throw RedisFault(.other) }
        defer { SSL_CTX_free(context) }
        switch options.verification {
        case .none: SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nil)
        case .full:
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            // An authority need not be a root: the given certificates are trusted.
            X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN))
            let isTrustSet =
                if let file = options.authorityFile {
                    SSL_CTX_load_verify_file(context, file) == 1
                } else {
                    SSL_CTX_set_default_verify_paths(context) == 1
                }
            guard isTrustSet else { throw RedisFault(.tls, "the authorities cannot be read: \(reason)") }
        }
        if options.keyFile != nil && options.certificateFile == nil {
            throw RedisFault(.tls, "the key has no certificate")
        }
        if let file = options.certificateFile, !setCertificate(file, key: options.keyFile ?? file, context) {
            throw RedisFault(.tls, "the certificate or its key cannot be used: \(reason)")
        }
        guard let session = SSL_new(context) else { throw RedisFault(.other) }
        return session
    }

    private static func setCertificate(_ file: String, key: String, _ context: OpaquePointer) -> Bool {
        // This is the password of an encrypted key. Without one OpenSSL would ask for it on the terminal.
        "".withCString {
            SSL_CTX_set_default_passwd_cb_userdata(context, UnsafeMutableRawPointer(mutating: $0))
            defer { SSL_CTX_set_default_passwd_cb_userdata(context, nil) }
            return SSL_CTX_use_certificate_chain_file(context, file) == 1
                && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1
        } && SSL_CTX_check_private_key(context) == 1
    }

    /// Sets the name that the certificate must have, and the name that is sent in the handshake (RFC 6066, 3: neither
    /// an address nor the dot of the root).
    private static func setName(_ options: RedisConfiguration.TLS, _ host: String, _ session: OpaquePointer) -> Bool {
        var name = options.serverName ?? host
        let isVerified = options.verification == .full
        let parameters = SSL_get0_param(session)
        var address = in6_addr()
        // The zone of an address is this machine's.
        if let zone = name.firstIndex(of: "%") { name = String(name[..<zone]) }
        if inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 {
            return !isVerified || X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1
        }
        if name.utf8.last == UInt8(ascii: ".") { name.removeLast() }
        // OpenSSL would accept any name, or any below a domain.
        if name.isEmpty || name.utf8.first == UInt8(ascii: ".") { return false }
        X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        return set_sent_name(session, name) == 1
            && (!isVerified || X509_VERIFY_PARAM_set1_host(parameters, name, 0) == 1)
    }

    private func handshake(_ descriptor: Int32, until end: UInt64) throws(RedisFault) {
        while true {
            ERR_clear_error()
            let code = SSL_connect(session)
            if code == 1 { return }
            let error = SSL_get_error(session, code)
            if isUseless { throw RedisFault(.tls, "the handshake does not end") }
            guard error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE else {
                throw RedisFault(.tls, handshakeReason)
            }
            let now = monotonicTime()
            if now >= end { throw RedisFault(.timeout) }
            let events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT
            var waited = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            if poll(&waited, 1, Int32(clamping: (end - now + 999_999) / 1_000_000)) < 0 && errno != EINTR {
                throw RedisFault(.io)
            }
        }
    }

    // MARK: Data

    /// Encrypts and sends as much as the socket accepts, within limits; returns the number of bytes.
    func write(_ bytes: UnsafeRawBufferPointer) throws(RedisFault) -> Int {
        var sent = 0
        waitsForInput = false
        while sent < min(bytes.count, Self.mostSent) {
            ERR_clear_error()
            let code = SSL_write(
                session, bytes.baseAddress?.advanced(by: sent), Int32(clamping: bytes.count - sent))
            if code <= 0 {
                waitsForInput = SSL_get_error(session, code) == SSL_ERROR_WANT_READ
                try checkWrite(code)
                break
            }
            sent += Int(code)
        }
        return sent
    }

    /// With TLS 1.3 a server refuses the client's certificate after the handshake, and closes. Then a write fails, but
    /// what the server has sent can still be read.
    private func checkWrite(_ code: Int32) throws(RedisFault) {
        do throws(RedisFault) {
            try check(code)
        } catch {
            if error.kind == .io { try read { _ in } }
            throw error
        }
    }

    /// Passes the data of the next record to `body`, if it has arrived.
    func read(_ body: (UnsafeRawBufferPointer) -> Void) throws(RedisFault) {
        ERR_clear_error()
        let code = withUnsafeTemporaryAllocation(byteCount: Self.recordBytes, alignment: 1) { space in
            let code = SSL_read(session, space.baseAddress, Int32(space.count))
            if code > 0 { body(UnsafeRawBufferPointer(rebasing: space[..<Int(code)])) }
            return code
        }
        if code <= 0 { return try check(code) }
        usefulCount = arrivedCount
    }

    /// Throws unless the call has only to be repeated when the socket is ready.
    private func check(_ code: Int32) throws(RedisFault) {
        switch SSL_get_error(session, code) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: if isUseless { throw RedisFault(.damaged) }
        default:
            defer { ERR_clear_error() }
            let isAlert = Self.reasonCode >= SSL_AD_REASON_OFFSET
            throw isAlert ? RedisFault(.tls, Self.reason) : RedisFault(.io)
        }
    }

    private var arrivedCount: UInt64 { BIO_number_read(SSL_get_rbio(session)) }
    private var isUseless: Bool { arrivedCount &- usefulCount > Self.mostUseless }

    // MARK: Reasons

    private static var reasonCode: Int32 { ERR_GET_REASON(ERR_peek_error()) }
    private static var reason: String {
        ERR_reason_error_string(ERR_peek_error()).map { String(cString: $0) } ?? "unknown error"
    }

    private var handshakeReason: String {
        if Self.reasonCode == SSL_R_CERTIFICATE_VERIFY_FAILED {
            return String(cString: X509_verify_cert_error_string(SSL_get_verify_result(session)))
        }
        return ERR_peek_error() == 0 ? "the connection was closed during the handshake" : Self.reason
    }
}

// MARK: Signals

/// Blocks all signals of the thread: hiredis and OpenSSL may write to a closed socket.
func blockSignals() {
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
}

/// Runs `body` without SIGPIPE, which a write to a closed socket may cause, and which must not end the process.
func withoutPipeSignal<Value>(_ body: () throws(RedisFault) -> Value) throws(RedisFault) -> Value {
    var pipe = sigset_t()
    var before = sigset_t()
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &pipe, &before)
    defer {
        if sigismember(&before, SIGPIPE) == 0 {
            var none = timespec()
            while sigtimedwait(&pipe, nil, &none) == SIGPIPE {}
        }
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }
    return try body()
}
