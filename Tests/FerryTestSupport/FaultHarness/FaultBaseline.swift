import FerryTesting
import Testing

@testable import Ferry

/// The resources of the process before a run, to compare with those after it: I2 for descriptors, I5 for memory.
struct FaultBaseline {
    private let descriptors = ProcessHoldings.descriptors.count
    private let memory: Int

    /// Descriptors that the runtime opens once and keeps are open from here on. Detached: it is not part of the first
    /// test.
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
                var probe = HTTPRequest.probe("\(server.baseURL)/bytes/100000")
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

    /// The peak is never more than this above the initial value.
    func expectBoundedMemory(_ bound: Int, _ name: String, _ sourceLocation: SourceLocation) {
        guard ProcessHoldings.isAlone else { return }
        // The sanitizers keep freed memory.
        #if !FERRY_TSAN && !FERRY_ASAN
        let grown = ProcessHoldings.peakMemory - memory
        #expect(grown < bound, "I5: \(name): \(grown) bytes at most", sourceLocation: sourceLocation)
        #endif
    }
}
