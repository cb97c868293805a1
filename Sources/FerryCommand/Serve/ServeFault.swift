internal import FerryTesting
internal import Glibc

/// Why the server does not run.
struct ServeFault: Error, CustomStringConvertible {
    let description: String

    init(port: UInt16, _ error: LoopbackError) {
        description =
            switch error {
            case .start(-EADDRINUSE): "port \(port) is in use"
            case .start(let code) where code < 0: "port \(port): \(String(cString: strerror(-code)))"
            case .start, .certificate, .file, .stopped, .script: "port \(port): \(error)"
            }
    }
}
