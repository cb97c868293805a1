/// How the command ends; scripts rely on these numbers.
enum ExitCode: Int32, Sendable, CaseIterable {
    case success = 0
    case usage = 1
    /// A file that was named could not be read or understood.
    case badInput = 2
    /// Or what came could not be written to standard output, or the server could not listen on its port.
    case transferFailed = 3
    /// The answer was not what was demanded, or a threshold was missed.
    case validationFailed = 4
    case statusNotAccepted = 5
    /// By ctrl-C: 128 + SIGINT, as shells count.
    case interrupted = 130

    /// In few words, for the help.
    var meaning: String {
        switch self {
        case .success: "ok"
        case .usage: "wrong usage"
        case .badInput: "bad input file"
        case .transferFailed: "transfer failed or output not written"
        case .validationFailed: "validation or threshold failed"
        case .statusNotAccepted: "status not accepted"
        case .interrupted: "interrupted"
        }
    }
}

/// A file named on the command line is of no use.
struct InputError: Error, Equatable {
    var message: String

    init(_ message: String) {
        self.message = message
    }
}
