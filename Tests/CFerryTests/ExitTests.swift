import CFerry
import COpenSSL
import Glibc
import Testing

extension CoreTests {
    /// The end of a process whose loops still run.
    @Suite(.timeLimit(.minutes(1))) struct Exit {
        @Test func openSSLIsLeftToTheThreadsOfLoops() async {
            await #expect(processExitsWith: .success) {
                let core = try CoreLoop()
                // OpenSSL calls it when it frees what its threads share.
                OPENSSL_atexit { _exit(77) }
                withExtendedLifetime(core) { exit(0) }
            }
        }
    }
}
