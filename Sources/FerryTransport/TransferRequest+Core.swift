internal import CFerry
internal import FoundationEssentials

extension TransferRequest {
    /// Calls `body` with the request in the core's form. Everything it points to is valid until `body` returns; the
    /// core copies it before that.
    func withCore<R>(id: TransferID, _ body: (UnsafePointer<ferry_request>) -> R) -> R {
        var core = ferry_request()
        core.id = id
        core.priority = ring.rawValue
        core.connect_ms = timeouts.connect
        core.idle_ms = timeouts.idle
        core.total_ms = timeouts.total
        core.deadline_ms = timeouts.deadline
        core.low_speed_bytes = timeouts.lowSpeedBytes
        core.low_speed_ms = timeouts.lowSpeedTime
        core.max_head = maxHeadBytes
        core.max_body = maxBodyBytes
        core.max_rate = maxRate
        core.flags = flags
        core.connections = connections ?? 0
        switch responseBody {
        case .collect: core.response_kind = UInt8(FERRY_COLLECT)
        case .stream, .held: core.response_kind = UInt8(FERRY_STREAM)
        }
        var url = url
        var method = method
        return url.withUTF8 { url in
            method.withUTF8 { method in
                headers.withBytes(adding: trace) { headers in
                    self.body.withBytes { kind, bytes, length in
                        core.body_kind = kind
                        core.body = bytes
                        core.body_length = length
                        core.headers = headers.baseAddress
                        core.headers_length = headers.count
                        return url.withMemoryRebound(to: CChar.self) { url in
                            method.withMemoryRebound(to: CChar.self) { method in
                                core.url = url.baseAddress
                                core.url_length = url.count
                                core.method = method.baseAddress
                                core.method_length = method.count
                                guard let extras else { return body(&core) }
                                return extras.withCore {
                                    core.extras = $0
                                    return body(&core)
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    private var flags: UInt32 {
        var flags = UInt32(FERRY_DECODE)
        if isIdempotent { flags |= UInt32(FERRY_IDEMPOTENT) }
        if reportsStart { flags |= UInt32(FERRY_NOTIFY_START) }
        if case .held = responseBody { flags |= UInt32(FERRY_HOLD_BODY) }
        if publicOnly { flags |= UInt32(FERRY_PUBLIC_ONLY) }
        if connections != nil { flags |= UInt32(FERRY_CONNECT) }
        if isDuplex { flags |= UInt32(FERRY_DUPLEX) }
        if sendsTrailers { flags |= UInt32(FERRY_TRAILERS) }
        if reportsInformational { flags |= UInt32(FERRY_NOTIFY_INFORMATIONAL) }
        if passesLimits { flags |= UInt32(FERRY_UNLIMITED) }
        return flags
    }
}

extension TransferRequest.Extras {
    fileprivate func withCore<R>(_ body: (UnsafePointer<ferry_extras>) -> R) -> R {
        var core = ferry_extras()
        let text: String?
        switch encodings {
        case .standard: (core.encodings_kind, text) = (UInt8(FERRY_ENCODINGS_OPTION), nil)
        case .none: (core.encodings_kind, text) = (UInt8(FERRY_ENCODINGS_NONE), nil)
        case .these(let these): (core.encodings_kind, text) = (UInt8(FERRY_ENCODINGS_THESE), these)
        }
        return proxy.withCore { proxy in
            credentials.withCore { credentials in
                text.withOptionalCString { text in
                    core.proxy = proxy
                    core.credentials = credentials
                    core.encodings = text
                    return body(&core)
                }
            }
        }
    }
}

extension TransferProxy? {
    fileprivate func withCore<R>(_ body: (UnsafePointer<ferry_proxy>?) -> R) -> R {
        guard let self else { return body(nil) }
        return self.address.withCString { address in
            self.user.withOptionalCString { user in
                self.password.withOptionalCString { password in
                    var core = ferry_proxy(
                        address: address, user: user, password: password, kind: self.kind.rawValue,
                        schemes: self.schemes.rawValue)
                    return body(&core)
                }
            }
        }
    }
}

extension TransferCredentials? {
    fileprivate func withCore<R>(_ body: (UnsafePointer<ferry_credentials>?) -> R) -> R {
        guard let self else { return body(nil) }
        return self.user.withCString { user in
            self.password.withCString { password in
                var core = ferry_credentials(
                    user: user, password: password, schemes: self.schemes.rawValue)
                return body(&core)
            }
        }
    }
}

extension TransferRequest.Body {
    fileprivate func withBytes<R>(_ body: (UInt8, UnsafeRawPointer?, UInt64) -> R) -> R {
        switch self {
        case .none: body(UInt8(FERRY_BODY_NONE), nil, 0)
        case .bytes(let bytes):
            bytes.withUnsafeBytes { body(UInt8(FERRY_BODY_BYTES), $0.baseAddress, UInt64($0.count)) }
        case .data(let data):
            data.withUnsafeBytes { body(UInt8(FERRY_BODY_BYTES), $0.baseAddress, UInt64($0.count)) }
        case .pull(let length): body(UInt8(FERRY_BODY_PULL), nil, length ?? UInt64.max)
        }
    }
}

extension String? {
    /// Calls `body` with the C string, `nil` for `nil`; it is valid until `body` returns.
    func withOptionalCString<R>(_ body: (UnsafePointer<CChar>?) -> R) -> R {
        guard let self else { return body(nil) }
        return self.withCString(body)
    }
}
