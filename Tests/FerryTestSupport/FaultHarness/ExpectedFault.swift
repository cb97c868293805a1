import Foundation
import Testing

@testable import Ferry

/// The required contents of an error (I7).
struct ExpectedFault {
    var code: RequestError.Code
    var phases: Set<RequestPhase>
    /// Whether the server may have acted on the request.
    var processed: Bool
    var attempts: Int
    /// It was sent, and the server has declared it unprocessed.
    var isUntouched = false
    /// The number of received bytes of head and body, if it is exactly known.
    var received: UInt64?
    var needsMessage = true

    /// For the table: the code, with the finer cause if that is a word, and the phase.
    var summary: String {
        let phases = phases.map { "\($0)" }.sorted()
        return "`\(code.summary)` in \(phases.joined(separator: " or "))"
    }
}

extension RequestError.Code {
    /// With the finer cause if that is a word, not a number.
    var summary: String { detail?.allSatisfy(\.isLetter) ?? false ? description : name }
}

extension RequestError {
    /// An error after which the server may have processed the request.
    static func processed(_ code: Code) -> RequestError {
        RequestError(Facts(code: code, phase: .waitingHead, mayHaveBeenProcessed: true))
    }
}

/// I6 and I7.
func check(
    _ error: RequestError, _ expected: ExpectedFault, url: String?, _ sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(error.code == expected.code, "\(error)", sourceLocation: sourceLocation)
    #expect(expected.phases.contains(error.phase), "\(error)", sourceLocation: sourceLocation)
    #expect(error.mayHaveBeenProcessed == expected.processed, "\(error)", sourceLocation: sourceLocation)
    #expect(error.attempts == expected.attempts, "\(error)", sourceLocation: sourceLocation)
    // Those of the last attempt only.
    let isSent = expected.processed || expected.isUntouched
    if error.redirects.isEmpty {
        // libcurl 8 sends the head together with the start of the body, and neither if that fails.
        let mayBeUnsent = expected.code == .uploadSource
        #expect(
            error.bytesSent > 0 ? isSent : !isSent || mayBeUnsent, "\(error)", sourceLocation: sourceLocation)
    }
    if let received = expected.received {
        #expect(error.bytesReceived == received, "\(error)", sourceLocation: sourceLocation)
    }
    if let url { #expect(error.url == url, sourceLocation: sourceLocation) }
    if expected.needsMessage { #expect(!error.message.isEmpty, "\(error)", sourceLocation: sourceLocation) }
    expectNoSecret(in: error, sourceLocation)
}

/// I6.
func expectNoSecret(in error: RequestError, _ sourceLocation: SourceLocation = #_sourceLocation) {
    let texts =
        SecretWatch.texts(of: error) + [
            error.message, error.url, error.code.description, (error as any Error).localizedDescription,
            "\(Optional(error) as Any)", "\(Result<Int, RequestError>.failure(error))",
            error.cause.map { String(describing: $0) } ?? "",
        ]
    for text in texts {
        for word in Canary.words { #expect(!text.contains(word), "I6", sourceLocation: sourceLocation) }
    }
}
