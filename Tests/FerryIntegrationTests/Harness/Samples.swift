import COpenSSL
import Ferry
import FoundationEssentials
import Testing

/// A GET and no more. The harness for faults wants one of each target.
struct Get: Request {
    var path: String

    init(_ path: String) { self.path = path }
}

extension HTTPRequest where Value == Response {
    /// A request for a whole URL.
    static func to(_ url: String, _ method: HTTPMethod = .get, body: RequestBody? = nil) -> HTTPRequest {
        HTTPRequest(method, url, body: body)
    }
}

extension HTTPRequest where Value == Echo {
    /// A request whose value is what the upstream got, as it answers.
    static func echo(_ url: String, _ method: HTTPMethod = .get, body: RequestBody? = nil) -> HTTPRequest {
        HTTPRequest(method, url, body: body, as: Echo.self)
    }
}

/// The error of a run; `nil` if it succeeds.
func failure<T>(_ body: () async throws(RequestError) -> T) async -> RequestError? {
    do throws(RequestError) {
        _ = try await body()
        return nil
    } catch {
        return error
    }
}

/// Passes an agent to `body` and shuts it down afterwards.
func withAgent(
    _ configuration: NetworkConfiguration = NetworkConfiguration(), _ body: (NetworkAgent) async throws -> Void
) async throws {
    let agent = NetworkAgent(configuration: configuration)
    do {
        try await body(agent)
    } catch {
        await agent.shutdown(grace: .zero)
        throw error
    }
    await agent.shutdown()
}

extension NetworkConfiguration {
    /// Trusts the authority of the tests.
    static var trusting: NetworkConfiguration {
        get throws { NetworkConfiguration(tls: TLSConfiguration(authorityFile: try Certificates.shared.authorityFile)) }
    }
}

/// 64 hexadecimal digits.
func sha256(_ bytes: [UInt8]) -> String { digest(bytes, EVP_sha256()) }

/// 32 hexadecimal digits: for the password file of a proxy with Digest.
func md5(_ text: String) -> String { digest(Array(text.utf8), EVP_md5()) }

private func digest(_ bytes: [UInt8], _ kind: OpaquePointer?) -> String {
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    // An empty array may have no address, which OpenSSL requires.
    _ = (bytes + [0]).withUnsafeBytes { EVP_Digest($0.baseAddress, bytes.count, &digest, &length, kind, nil) }
    return digest.prefix(Int(length)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// A value that no other request has.
func token() -> String { UUID().uuidString }
