internal import Ferry

/// `--engine`: what carries requests over HTTP/1.1.
enum EngineOption {
    static let name = "engine"
    static let words = ["automatic", "libcurl"]

    /// Its help names the engine that counts without it.
    static var option: CommandOption {
        CommandOption(
            name, value: "NAME", words: words,
            "HTTP/1.1 by Ferry's own engine, or all by libcurl (\(TransferEngine.standard.word))")
    }

    /// `nil` when it is not given.
    static func engine(_ arguments: ParsedArguments) throws(UsageError) -> TransferEngine? {
        switch arguments.last(name) {
        case nil: nil
        case "automatic": .automatic
        case "libcurl": .libcurl
        case .some(let text): throw UsageError("--engine wants automatic or libcurl, not '\(text)'")
        }
    }
}

extension TransferEngine {
    /// As the command line has it.
    var word: String { self == .automatic ? "automatic" : "libcurl" }
}

extension RequestMetrics.Engine {
    /// As JSON has it.
    var word: String { self == .http1 ? "http1" : "libcurl" }
}
