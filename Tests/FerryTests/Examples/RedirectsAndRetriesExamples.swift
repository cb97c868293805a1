import Ferry
import Testing

@testable import FerryTestSupport

/// The code of the article "Redirects and retries".
@Suite struct RedirectsAndRetriesExamples {
    struct Stock: Request {
        let item: Int
        var path: String { "/stock/\(item)" }
        var retryPolicy: RetryPolicy? {
            var policy = RetryPolicy.exponential(maxAttempts: 5)
            policy.statuses.insert(500)
            policy.decide = { failed in failed.attempt == 1 && failed.status == 404 ? .retry : .byPolicy }
            return policy
        }
    }

    @Test func policiesAreValues() {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
        configuration.sensitiveHeaders = ["X-Api-Key"]
        configuration.redirectPolicy = .follow(upTo: 3) { hop in
            hop.host.hasSuffix(".example.com") ? .follow : .refuse
        }
        configuration.retryPolicy = .exponential(maxAttempts: 4, baseDelay: .milliseconds(100))
        configuration.retryBudget = RetryBudget(ratio: 0.1, minimumPerSecond: 1, burst: 20)
        #expect(configuration.retryBudget.burst == 20)
        #expect(configuration.redirectPolicy.limit == 3 && configuration.retryPolicy.maxAttempts == 4)
        #expect(Stock(item: 7).retryPolicy?.statuses.contains(500) == true)
    }
}
