internal import Ferry
internal import FerryTesting

/// Finds what is wrong with a request before anything is sent. The engine decides, so that it and the command cannot
/// disagree.
enum RequestCheck {
    /// Throws if a run of the request could only fail.
    static func check(_ request: some Request, _ configuration: NetworkConfiguration) throws(UsageError) {
        var configuration = configuration
        // They are not needed to build a request, and may open files.
        (configuration.cache, configuration.recorder, configuration.logSink) = (nil, nil, nil)
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .hold))
        if let error = fault(of: request, by: agent) { throw UsageError(FailureText.of(error, request)) }
    }

    /// Why a run of the request could only fail; `nil` if it may succeed. Paths are below some base.
    static func fault(of request: some Request) -> RequestError? { fault(of: request, by: plain) }

    /// Why no path can be joined to a base; `nil` if it is a URL.
    static func fault(ofBase base: String) -> String? {
        let request = HTTPRequest(.get, base)
        return fault(of: request).map { FailureText.of($0, request) }
    }

    /// It has no network: it only builds requests.
    private static let plain = NetworkAgent(
        configuration: NetworkConfiguration(baseURL: "http://h"), stub: StubTransport(always: .hold))

    private static func fault(of request: some Request, by agent: NetworkAgent) -> RequestError? {
        do throws(RequestError) {
            _ = try agent.curlCommand(for: request)
            return nil
        } catch {
            return error.isWrongUsage ? error : nil
        }
    }
}

extension RequestError {
    /// Whether the command line or the plan is wrong: every run of the request would fail so, before anything is sent.
    var isWrongUsage: Bool {
        let codes = [Code.invalidURL, .unsupportedScheme, .invalidRequest, .proxy(.configuration)]
        return phase == .preparing && codes.contains { self.is($0) }
    }
}
