/// What is wrong with a body, in Ferry's own words.
struct BodyFault: Error {
    var code = RequestError.Code.uploadSource
    var message: String
    var errno: Int32 = 0
}

extension RequestError {
    /// A body that was refused before anything was sent.
    init(_ fault: BodyFault, url: String) {
        self = RequestError(preparing: fault.code, message: fault.message, url: url).explained(by: fault)
    }

    /// The same error, with what the source of its body says: its own words, or what the application's code threw.
    func explained(by failure: any Error) -> RequestError {
        var facts = facts
        switch failure {
        case let fault as BodyFault:
            facts.message = fault.message
            facts.errno = fault.errno
        default:
            facts.message = "the stream of the body threw \(type(of: failure))"
            facts.cause = failure
        }
        return RequestError(facts)
    }
}
