public import FerryJSON
import FerryTransport

extension Response {
    /// The body as JSON; `nil` when it is empty. A body that is something else is `invalidJSON`, which says where.
    ///
    /// It is parsed where it stands, at the first use, and then shared by all copies of the response until the last of
    /// them goes. Views keep the parsed document alive; `detached()` is for those that are kept for long.
    public var json: JSON? {
        get throws(RequestError) {
            if let document = reading as? JSONDocument { return JSON(document) }
            let bytes = result.body
            if bytes.isEmpty { return nil }
            let parsed: JSON
            do {
                parsed = try JSON(parsing: bytes, spare: Self.spareBytes)
            } catch {
                throw RequestError(error, of: self)
            }
            return (keep(parsed.document) as? JSONDocument).map { JSON($0) } ?? parsed
        }
    }

    /// Checks the body against a schema, for those that a request cannot name beforehand, like one for each status.
    /// Throws `schemaMismatch`, which says where, or `invalidJSON`, also for an empty body. What has passed is not
    /// checked again by the same schema: a hit in the memory of a cache costs no parse.
    public func check(by schema: JSONSchema) throws(RequestError) {
        if result.passedCheck == schema.number { return }
        let json = try requireJSON()
        do {
            try schema.check(json)
        } catch {
            throw RequestError(.schemaMismatch, error, of: self)
        }
        result.passedCheck = schema.number
    }

    /// The core keeps as many behind every body.
    static let spareBytes = 64

    /// Likewise; an empty body is no JSON either.
    func requireJSON() throws(RequestError) -> JSON {
        if let json = try json { return json }
        throw RequestError(JSONSyntaxError(reason: .empty, offset: 0), of: self)
    }

    /// Its memory goes back to the parsers' pool, unless somebody has a view of it: it is many times the body's.
    func forgetJSON() { forgetReading() }
}

extension Reply {
    /// ``Response/json`` of the response.
    public var json: JSON? {
        get throws(RequestError) { try response.json }
    }
}
