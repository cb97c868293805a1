import Ferry
import Foundation
import Testing

@testable import FerryTestSupport

/// The code of the reference: what the comments of Ferry's public declarations show.
private enum RequestReference {
    struct User: Decodable, Sendable {
        let id: Int
    }
    struct Order: Decodable, Sendable {
        let id: Int
    }

    struct UserInfo: Request {
        typealias Value = User  // Decodable
        let id: Int
        var path: String { "/users/\(id)" }
    }

    struct Orders: Request {
        typealias Value = [Order]
        var user: Int
        init(of user: Int) { self.user = user }
        var path: String { "/users/\(user)/orders" }
    }

    struct Export: Request { var path: String { "/export" } }
    struct Image: Request {
        let id: String
        var path: String { "/images/\(id)" }
    }

    class ShopRequest: BaseRequest, @unchecked Sendable {
        override var baseURL: String? { "https://shop.example.com/v1" }
    }
    final class Item: ShopRequest, @unchecked Sendable {
        let id: Int
        init(id: Int) { self.id = id }
        override var path: String { "/items/\(id)" }
    }

    static func sends(_ agent: NetworkAgent) async throws -> User {
        struct UserInfo: Request {
            typealias Value = User  // Decodable
            let id: Int
            var path: String { "/users/\(id)" }
        }
        let user = try await agent.send(UserInfo(id: 7)).value
        return user
    }

    static func exchanges(_ agent: NetworkAgent) {
        agent.updateServers { servers in
            servers.baseURL = "https://staging.example.com"
            servers.urlFilters.append(ArgumentsFilter(["staging": true]))
        }
    }

    static func shutsDown() async throws -> Int {
        let reply = try await withNetworkAgent { agent in try await agent.send(UserInfo(id: 7)) }
        return reply.status
    }

    static func asks(_ agent: NetworkAgent) async throws(RequestError) {
        do throws(RequestError) {
            try await agent.send(UserInfo(id: 7))
        } catch {
            switch error.code {
            case .timeout(.connect): break  // no connection in time
            case .timeout: break  // any other timeout
            case .invalidStatusCode(500...599): break  // the server is in trouble
            default: throw error
            }
        }
    }

    static func arguments(id: Int, name: String) -> Arguments {
        ["a": 1, "b": ["x", "y"], "c": ["k": nil], "id": .integer(id), "name": .string(name)]
    }

    static func form() -> Multipart {
        var form = Multipart()
        form.append("title", "Holidays")
        form.append("photo", file: "/srv/photos/1.jpg", contentType: "image/jpeg")
        return form
    }

    static func streams(_ agent: NetworkAgent, to file: FileHandle) async throws {
        let export = try await agent.stream(Export())
        for try await piece in export.body { try file.write(contentsOf: piece) }
    }

    static func loads(_ agent: NetworkAgent, to path: String) async throws -> String {
        let file = try await agent.download(Image(id: "1.jpg"), to: .directory(path)) { print($0.fraction ?? 0) }
        return file.path
    }

    static func prints(_ agent: NetworkAgent) throws {
        print(try agent.curlCommand(for: Export()))  // curl -H 'Authorization: ***' … 'https://h/export?key=***'
    }
}

private enum GroupReference {
    typealias UserInfo = RequestReference.UserInfo
    typealias Orders = RequestReference.Orders

    struct Cart: Sendable {}
    struct Receipt: Decodable, Sendable {}
    struct SignUp: Request {
        typealias Value = RequestReference.User
        let name: String
        var path: String { "/users" }
    }
    struct Reserve: Request {
        typealias Value = String
        init(_ cart: Cart) {}
        var path: String { "/reserve" }
    }
    struct Pay: Request {
        typealias Value = Receipt
        init(_ reservation: String) {}
        init(user: RequestReference.User, orders: [RequestReference.Order]) {}
        var path: String { "/pay" }
    }

    struct Checkout: RequestGroup {
        let cart: Cart
        var groupMember: GroupMember<Receipt> { ChainRequest(Reserve(cart)).then { Pay($0) }.groupMember }
    }

    static func batches(_ agent: NetworkAgent, _ ids: [Int]) async throws -> Int {
        let (me, orders) = try await agent.send(BatchRequest(UserInfo(id: 7), Orders(of: 7)))
        let users = try await agent.send(BatchRequest(ids.map(UserInfo.init), .collectAll, atMost: 8))
        return me.id + orders.count + users.count
    }

    static func chains(_ agent: NetworkAgent) async throws -> Receipt {
        let receipt = try await agent.send(  // A → (B and C) → D
            ChainRequest(SignUp(name: "kim"))
                .then { BatchRequest(UserInfo(id: $0.id), Orders(of: $0.id)) }
                .then { user, orders in Pay(user: user, orders: orders) })
        return receipt
    }
}

private enum PolicyReference {
    typealias UserInfo = RequestReference.UserInfo

    struct FetchToken: Request {
        typealias Value = String
        var path: String { "/token" }
    }

    static func session(_ configuration: inout NetworkConfiguration) {
        struct Session: Authenticator {
            func apply(_ token: String, to request: inout OutgoingRequest) {
                request.headers["Authorization"] = "Bearer \(token)"
            }
            func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
                try await agent.send(FetchToken()).value
            }
        }
        configuration.authenticator = Session()
    }

    static func proxies() -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
        configuration.proxy = .http("proxy.example.com", port: 3128).except("localhost", ".internal", "10.0.0.0/8")
        configuration.proxy = .environment  // HTTPS_PROXY and the like
        configuration.proxy = .schemes(http: .none, https: .url("socks5h://kim:secret@gate:1080"))
        return configuration
    }

    static func redirects() -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
        configuration.redirectPolicy = .follow(upTo: 3, sensitiveHeaders: ["X-Api-Key"]) { hop in
            hop.host.hasSuffix(".example.com") ? .follow : .refuse
        }
        return configuration
    }

    static func retries() -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
        configuration.retryPolicy = .exponential(maxAttempts: 4, baseDelay: .milliseconds(100))
        return configuration
    }

    static func filtersAndCaches(_ configuration: inout NetworkConfiguration) {
        configuration.urlFilters = [ArgumentsFilter(["version": "1.2", "platform": "linux"])]
        configuration.cache = CacheConfiguration(directory: "/var/cache/shop")
    }

    static func records(_ agent: NetworkAgent, _ configuration: inout NetworkConfiguration) async throws {
        let recorder = MetricsRecorder()
        configuration.observers.append(recorder)
        try await agent.send(UserInfo(id: 7))
        print(recorder.snapshot.latency.percentile(99), recorder.prometheusText())
    }
}

/// What can be seen of it without a network.
@Suite struct ReferenceExamples {
    @Test func policiesAreAsShown() throws {
        var configuration = PolicyReference.retries()
        #expect(configuration.retryPolicy.maxAttempts == 4)
        PolicyReference.filtersAndCaches(&configuration)
        PolicyReference.session(&configuration)
        #expect(configuration.urlFilters.count == 1 && configuration.authenticator != nil)
        #expect(configuration.cache?.directory == "/var/cache/shop")
        #expect(PolicyReference.redirects().redirectPolicy.sensitiveHeaders == ["X-Api-Key"])
        #expect(PolicyReference.proxies().baseURL == "https://api.example.com")
    }

    @Test func requestsAreAsShown() {
        #expect(RequestReference.Item(id: 3).path == "/items/3")
        #expect(RequestReference.Item(id: 3).baseURL == "https://shop.example.com/v1")
        #expect(RequestReference.arguments(id: 1, name: "n")["a"] == 1)
    }
}

/// A hierarchy whose classes name their values.
private enum TypedHierarchyReference {
    class ShopRequest<Value: Sendable>: TypedBaseRequest<Value>, @unchecked Sendable {
        override var baseURL: String? { "https://shop.example.com/v1" }
    }
    final class Price: ShopRequest<Int>, @unchecked Sendable {
        override var path: String { "/price" }
    }
}

/// The ways to tell errors apart.
private enum ErrorCodeReference {
    static func retryLater() {}
    static func giveUp() {}
    static func complain() {}

    static func tellApart(_ error: RequestError) throws -> Int? {
        switch error.code {
        case .timeout(.connect): retryLater()  // no connection in time
        case .timeout: giveUp()  // any other timeout
        case .invalidStatusCode(500...599): complain()
        default: throw error
        }
        if error.is(.invalidStatusCode(404)) { return nil }
        return 0
    }
}

@Suite struct ErrorCodeReferenceTests {
    @Test func theCodesOfTheReferenceAreToldApart() throws {
        #expect(try ErrorCodeReference.tellApart(RequestError(.timeout(.connect))) == 0)
        #expect(throws: RequestError.self) { try ErrorCodeReference.tellApart(RequestError(.invalidStatusCode(404))) }
        #expect(TypedHierarchyReference.Price().path == "/price")
    }
}
