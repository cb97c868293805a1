import Ferry
import Testing

/// The examples in the documentation of the policies, unchanged.
@Suite struct PolicyExampleTests {
    @Test func redirectsWithinADomain() {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
        configuration.redirectPolicy = .follow(upTo: 3, sensitiveHeaders: ["X-Api-Key"]) { hop in
            hop.host.hasSuffix(".example.com") ? .follow : .refuse
        }
        #expect(configuration.redirectPolicy.limit == 3)
    }

    @Test func retriesWithBackOff() {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
        configuration.retryPolicy = .exponential(maxAttempts: 4, baseDelay: .milliseconds(100))
        #expect(configuration.retryPolicy.maxAttempts == 4)
    }

    @Test func proxiesOfAllKinds() {
        let office = ProxyConfiguration.http("proxy.example.com", port: 3128)
            .except("localhost", ".internal", "10.0.0.0/8")
        #expect("\(office)" == "http: http://proxy.example.com:3128, https: http://proxy.example.com:3128")
        let mixed = ProxyConfiguration.schemes(http: .none, https: .url("socks5h://kim:secret@gate:1080"))
        #expect("\(mixed)" == "http: none, https: socks5h://gate:1080")
    }
}
