@testable import Ferry

/// A closure as an adapter.
struct Adapt: RequestAdapter {
    let body: @Sendable (inout OutgoingRequest, RunInfo) async throws -> Void
    init(_ body: @escaping @Sendable (inout OutgoingRequest, RunInfo) async throws -> Void) { self.body = body }
    func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws { try await body(&request, run) }
}

/// A closure as an interceptor.
struct Intercept: RequestInterceptor {
    let body: @Sendable (OutgoingRequest, RunInfo) async throws -> InterceptedResponse?
    init(_ body: @escaping @Sendable (OutgoingRequest, RunInfo) async throws -> InterceptedResponse?) {
        self.body = body
    }
    func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse? {
        try await body(request, run)
    }
}
