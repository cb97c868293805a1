import FerryTesting
import Testing

@testable import Ferry

/// What the process held before a run, to be compared with what it holds after: I2 for descriptors, I5 for memory.
struct FaultBaseline {
    private let descriptors = ProcessHoldings.descriptors.count
    private let memory: Int

    /// What the runtime opens once and keeps is open from here on. Detached: it is no part of the test that comes
    /// first.
    static let isWarm = Task.detached {
        guard let certificate = try? ServerCertificate() else { return }
        for options in [LoopbackServer.Options(), .init(certificate: certificate)] {
            guard let server = try? LoopbackServer(options) else { return }
            let cache = FaultCache()
            var configuration = NetworkConfiguration()
            configuration.tls.authorityFile = certificate.authorityFile
            configuration.cache = cache.configuration
            let agent = NetworkAgent(configuration: configuration)
            for play in FaultSetup().plays {
                var probe = Probe(path: "\(server.baseURL)/bytes/100000")
                if play.isKept { probe.cachePolicy = FaultCache.policy }
                _ = try? await agent.outcome(of: probe, play)
            }
            _ = try? await agent.send(Get("http://localhost:1/"))
            await agent.shutdown()
            server.stop()
        }
    }

    init() {
        ProcessHoldings.resetPeak()
        memory = ProcessHoldings.memory
    }

    func expectNoDescriptorsLeft(_ name: String, _ sourceLocation: SourceLocation) async {
        guard ProcessHoldings.isAlone else { return }
        #expect(
            await eventually { ProcessHoldings.descriptors.count <= descriptors },
            "I2: \(name): \(descriptors) before, then \(ProcessHoldings.descriptors)", sourceLocation: sourceLocation)
    }

    /// Never more than this above what there was.
    func expectBoundedMemory(_ bound: Int, _ name: String, _ sourceLocation: SourceLocation) {
        guard ProcessHoldings.isAlone else { return }
        // The sanitizers keep what was freed.
        #if !FERRY_TSAN && !FERRY_ASAN
        let grown = ProcessHoldings.peakMemory - memory
        #expect(grown < bound, "I5: \(name): \(grown) bytes at most", sourceLocation: sourceLocation)
        #endif
    }
}
