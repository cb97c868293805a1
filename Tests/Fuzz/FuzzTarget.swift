/// A reader of untrusted input, and the properties that hold for any bytes.
enum FuzzTarget: String, CaseIterable {
    case json, schema, header, decode, range, retry, disposition, url, cache, plan, response, connection, differences

    /// Throws, or ends the process, if a property does not hold.
    func check(_ bytes: UnsafeRawBufferPointer) throws {
        switch self {
        case .json: try checkJSON(bytes)
        case .schema: try checkSchemaFile(bytes)
        case .header: try checkHeader(bytes)
        case .decode: try checkDecoding(bytes)
        case .range: try checkContentRange(text(bytes))
        case .retry: try checkRetryAfter(text(bytes))
        case .disposition: try checkDisposition(text(bytes))
        case .url: try checkURL(text(bytes))
        case .cache: try checkCacheEntry(bytes)
        case .plan: try checkPlan(bytes)
        case .response: try checkResponse(bytes)
        case .connection: try checkConnection(bytes)
        case .differences: try checkDifferences(bytes)
        }
    }

    private func text(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// A property that does not hold.
struct BrokenPromise: Error, CustomStringConvertible {
    let description: String
}

func promise(_ holds: Bool, _ words: @autoclosure () -> String) throws {
    if !holds { throw BrokenPromise(description: words()) }
}

func promised<Value>(_ value: Value?, _ words: @autoclosure () -> String) throws -> Value {
    guard let value else { throw BrokenPromise(description: words()) }
    return value
}
