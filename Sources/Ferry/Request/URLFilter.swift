/// Changes the paths of an agent's requests before they are joined to a base: the place of arguments that every request
/// carries, like a version or a signature.
///
/// Absolute URLs do not pass it: what it adds may be a secret of one's own. Filters run in their order, each on what
/// the one before has made, in the caller's thread.
public protocol URLFilter: Sendable {
    /// The path to use in the place of `path`, which may have a query.
    func filter(_ path: String, of request: any Request) -> String
}

/// Appends arguments to the query of every path, before a fragment, with `?` or `&` as needed.
///
///     configuration.urlFilters = [ArgumentsFilter(["version": "1.2", "platform": "linux"])]
public struct ArgumentsFilter: URLFilter {
    private let query: [UInt8]

    /// A filter for these arguments, which are encoded as in any query.
    public init(_ arguments: Arguments) { query = arguments.formEncoded() }

    /// The path with the arguments.
    public func filter(_ path: String, of request: any Request) -> String {
        URLJoiner.append(query: query, to: path)
    }
}
