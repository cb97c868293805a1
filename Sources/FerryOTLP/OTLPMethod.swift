/// The methods that OpenTelemetry's semantic conventions know: those of RFC 9110 (9.3), and PATCH (RFC 5789). Others
/// could be without number, and each would be a series of its own.
enum OTLPMethod {
    /// The value for any other method.
    static let other = "_OTHER"

    static func isKnown(_ method: String) -> Bool {
        switch method {
        case "GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "TRACE", "CONNECT": true
        default: false
        }
    }

    /// The value of `http.request.method`.
    static func known(_ method: String) -> String { isKnown(method) ? method : other }
}
