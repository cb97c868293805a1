import Ferry
import FerryTesting

struct User: Decodable, Sendable {
    var nick: String
}

struct UserInfo: Request {
    typealias Value = User
    let id: Int
    var path: String { "/users/\(id)" }
}

@main
struct Main {
    static func main() async throws {
        let server = try LoopbackServer()
        server.handle("GET", "/users/7") { _ in LoopbackResponse(json: #"{"nick":"kim"}"#) }
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let reply = try await agent.send(UserInfo(id: 7))
        precondition(reply.status == 200 && reply.value.nick == "kim" && server.requestCount == 1)
        await agent.shutdown()
        server.stop()
        print("one request, one user:", reply.value.nick)
    }
}
