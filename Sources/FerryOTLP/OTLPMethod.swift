/// The methods that OpenTelemetry's semantic conventions know: those of RFC 9110 (9.3), and PATCH (RFC 5789). Others
/// could be without number, and each would be a series of its own.
enum OTLPMethod {
    /// The value for any other method.
    static let other = "_OTHER"

    /// A number for each of them; 0 for any other.
    static func number(of method: String) -> UInt64 {
        switch method {
        case "GET": 1
        case "POST": 2
        case "PUT": 3
        case "DELETE": 4
        case "HEAD": 5
        case "PATCH": 6
        case "OPTIONS": 7
        case "TRACE": 8
        case "CONNECT": 9
        default: 0
        }
    }

    static func isKnown(_ method: String) -> Bool { number(of: method) != 0 }

    /// The value of `http.request.method`.
    static func known(_ method: String) -> String { isKnown(method) ? method : other }
}
