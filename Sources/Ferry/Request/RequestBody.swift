public import FoundationEssentials

/// What a request carries.
public struct RequestBody: Sendable {
    // Indirect, so that the body that most requests do not have costs nothing to pass on.
    indirect enum Content: Sendable {
        case data(Data)
        case bytes([UInt8])
        case string(String)
        case json(any Encodable & Sendable)
    }

    let content: Content
    let contentType: String?

    /// Bytes. No content type is sent unless one is named here or in the headers.
    public static func data(_ data: Data, contentType: String? = nil) -> RequestBody {
        RequestBody(content: .data(data), contentType: contentType)
    }

    /// Bytes. No content type is sent unless one is named here or in the headers.
    public static func bytes(_ bytes: [UInt8], contentType: String? = nil) -> RequestBody {
        RequestBody(content: .bytes(bytes), contentType: contentType)
    }

    /// Text as UTF-8.
    public static func string(_ text: String, contentType: String = "text/plain; charset=utf-8") -> RequestBody {
        RequestBody(content: .string(text), contentType: contentType)
    }

    /// A value as JSON. One that cannot be JSON (a number that is not finite, an `encode` that throws) fails the run
    /// with `invalidRequest(.body)` before anything is sent.
    public static func json(_ value: any Encodable & Sendable) -> RequestBody {
        RequestBody(content: .json(value), contentType: "application/json")
    }

    /// Whether it can be sent once more.
    var isReplayable: Bool { true }
}
