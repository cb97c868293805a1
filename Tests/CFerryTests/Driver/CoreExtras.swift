import CFerry

/// A `ferry_extras` as a value.
struct CoreExtras: Sendable {
    struct Proxy: Sendable {
        var kind = FERRY_PROXY_HTTP
        var address: String
        var user: String?
        var password: String?
        var schemes = 0
    }

    struct Credentials: Sendable {
        var user: String
        var password: String
        var schemes: Int
    }

    var proxy: Proxy?
    var credentials: Credentials?
    var encodings: String?
    var encodingsKind = FERRY_ENCODINGS_OPTION

    /// The C struct; everything it points to is valid until `use` returns.
    func withCore<R>(_ use: (UnsafePointer<ferry_extras>) -> R) -> R {
        proxy.withCore { proxy in
            credentials.withCore { credentials in
                encodings.withCopy { encodings in
                    var core = ferry_extras()
                    core.proxy = proxy
                    core.credentials = credentials
                    core.encodings = encodings
                    core.encodings_kind = UInt8(encodingsKind)
                    return use(&core)
                }
            }
        }
    }
}

extension CoreExtras.Proxy? {
    fileprivate func withCore<R>(_ use: (UnsafePointer<ferry_proxy>?) -> R) -> R {
        guard let self else { return use(nil) }
        return self.address.withCString { address in
            self.user.withCopy { user in
                self.password.withCopy { password in
                    var core = ferry_proxy(
                        address: address, user: user, password: password, kind: UInt8(self.kind),
                        schemes: UInt8(self.schemes))
                    return use(&core)
                }
            }
        }
    }
}

extension CoreExtras.Credentials? {
    fileprivate func withCore<R>(_ use: (UnsafePointer<ferry_credentials>?) -> R) -> R {
        guard let self else { return use(nil) }
        return self.user.withCString { user in
            self.password.withCString { password in
                var core = ferry_credentials(
                    user: user, password: password, schemes: UInt8(self.schemes))
                return use(&core)
            }
        }
    }
}
