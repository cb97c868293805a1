@testable import Ferry

/// An exchange as a command line of curl, as ``CurlCommand`` writes it.
func curlCommand(
    method: HTTPMethod = .get, url: String, headers: Headers = Headers(), body: CurlCommand.Body = .none,
    options: CurlCommand.Options = .init(), sensitiveHeaders: [String] = [], redacted: Bool = true
) -> String {
    CurlCommand(
        method: method, url: url, headers: headers, body: body, options: options, sensitiveHeaders: sensitiveHeaders
    ).text(redacted: redacted)
}
