/// Why a loopback server could not do what was asked of it.
public enum LoopbackError: Error, Sendable, Equatable {
    /// It could not listen: a negative `errno`, as libuv gives it (the port is taken, the address is not ours).
    case start(Int32)
    /// OpenSSL made no certificate.
    case certificate
    /// A file could not be read or written.
    case file(String)
    /// The server was stopped while something was awaited of it.
    case stopped
    /// A script is not what ``LoopbackScript`` says it is.
    case script(String)
}
