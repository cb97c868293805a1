import Testing

/// All tests of the loopback server, one after the other: some of them count the descriptors of the process.
@Suite("Loopback", .serialized)
enum LoopbackTests {}
