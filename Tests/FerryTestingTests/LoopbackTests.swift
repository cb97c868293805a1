import Testing

/// All tests of the loopback server, run one after another: some of them count the descriptors of the process.
@Suite("Loopback", .serialized)
enum LoopbackTests {}
