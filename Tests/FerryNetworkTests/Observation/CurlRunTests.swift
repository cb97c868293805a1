import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs commands with bash and curl, and checks what the server received.
@Suite(.timeLimit(.minutes(3))) struct CurlRunTests {
    private func sent(
        _ server: LoopbackServer, _ command: CurlCommand, before: String = "", environment: [String: String] = [:]
    ) throws -> LoopbackRequest {
        let text = before + command.text(redacted: false)
        let end = try run(text, environment)
        try #require(end.code == 0, "\(text.prefix(2000))\n\(end.output)")
        return try #require(server.requests.last)
    }

    private func run(_ text: String, _ variables: [String: String] = [:]) throws -> ChildProcess.End {
        var arguments = ["bash", "-c", "{ \(text) ; } 2>&1"]
        let file = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UInt64.random(in: 0 ... .max)).sh")
        // The system allows words of 128 KiB.
        if text.utf8.count > 100_000 {
            try Data(arguments[2].utf8).write(to: file)
            arguments = ["bash", file.path]
        }
        defer { try? FileManager.default.removeItem(at: file) }
        // Without the user's own settings.
        let environment = ["CURL_HOME": "/nonexistent", "HOME": "/nonexistent", "http_proxy": "", "all_proxy": ""]
        return try ChildProcess(arguments, environment: environment.merging(variables) { $1 }).finish()
    }

    /// Without curl's fields for the framing and the host.
    private func fields(_ request: LoopbackRequest) -> [String] {
        request.headers.fields.filter { !["Host", "Content-Length", "Transfer-Encoding"].contains($0.name) }
            .map { "\($0.name): \($0.value)" }
    }

    /// Difficult for a shell, for curl, or for both.
    private static let nasty = [
        "", "'", "''", "\"", "\\", "\\'", "a'b\"c\\d", "@", "@/etc/passwd", "@-", "<x", "-d", "--help",
        "$HOME `id` $(id)",
        "a\nb\r\n\r\nc\n", "\n", "\t", "!!", "a!b\n!", "*?[a-z]{b,c}~", "a;b&c|d>e<f", "#", "%00%s%d%%", "ä€😀",
        "a\u{301}",
        "\u{202E}x\u{2066}", "\u{7F}\u{1}\u{1B}[2J", "\u{FEFF}", "name=value; other", "===", " lead and trail ",
    ]

    @Test func bodiesOfAnyTextArrive() throws {
        let server = try LoopbackServer()
        for (index, text) in Self.nasty.enumerated() {
            let command = CurlCommand(
                method: index % 2 == 0 ? .post : .put, url: server.baseURL + "/hello", body: .bytes(Array(text.utf8)))
            let request = try sent(server, command)
            #expect(request.body == Array(text.utf8), "\(command.text(redacted: false))")
            #expect(request.method == command.method.rawValue)
            #expect(fields(request) == [])
            #expect(request.headers["Content-Length"] == "\(text.utf8.count)")
        }
    }

    @Test func bodiesOfAnyBytesArrive() throws {
        let server = try LoopbackServer(.init(recording: 1 << 20))
        let all = (0...255).map { UInt8($0) }
        let random = (0..<5000).map { _ in UInt8.random(in: .min ... .max) }
        let cut = Array("ä€😀".utf8)
        let long = (0..<150_000).map { UInt8(32 + $0 % 95) }
        var bodies: [[UInt8]] = [
            all, Array(all.dropFirst()), Array(all.dropFirst().reversed()), random, [0], [0, 0x31], [0xFF], long,
        ]
        bodies += cut.indices.map { Array(cut[..<$0]) }
        bodies += cut.indices.map { Array(cut[$0...]) }
        // No options of the program that prints them.
        bodies += [[0x2D, 0], [0x2D, 0x76, 0x61, 0, 0x2D], [0x2D, 0x2D, 0], [0x2D] + long]
        for bytes in bodies {
            let request = try sent(server, CurlCommand(method: .post, url: server.baseURL, body: .bytes(bytes)))
            #expect(request.body == bytes)
            #expect(fields(request) == [])
        }
    }

    @Test func fieldsOfAnyValueArrive() throws {
        let server = try LoopbackServer()
        let values = Self.nasty.map { $0.trimmed }.filter { value in
            !value.utf8.contains { isControl($0) && $0 != 0x09 }
        }
        var headers: Headers = ["User-Agent": "Ferry/1 (it's)", "Accept": "*/*"]
        for (index, value) in values.enumerated() { headers.append("X-\(index % 20)", value) }
        headers.append("Empty", "")
        headers.append("Content-Length", "7")
        let request = try sent(server, CurlCommand(url: server.baseURL + "/hello", headers: headers))
        let expected = headers.fields.dropLast().map { "\($0.name): \($0.value)" }
        #expect(fields(request) == expected)
        #expect(request.headers["Content-Length"] == nil)
    }

    @Test(arguments: [
        "/a%20b?x=1&y=%26", "/a{b,c}[1-3]", "/it's?q='$(id)'", "/a/../b/./c", "/x?a[]=1&a[]=2", "/%E2%82%AC", "/#frag",
        "/a?b#c", "//double", "/a;b=c?!!", "/@file", "/*",
    ])
    func targetsArriveAsTheyAre(_ target: String) throws {
        let server = try LoopbackServer()
        let request = try sent(server, CurlCommand(url: server.baseURL + target))
        #expect(request.target == String(target.prefix { $0 != "#" }))
        #expect(fields(request) == [])
    }

    @Test(arguments: [HTTPMethod.get, .head, .post, .put, .patch, .delete, .options, "PURGE", "X-Y", "get"])
    func methodsArriveWithAndWithoutABody(_ method: HTTPMethod) throws {
        let server = try LoopbackServer()
        #expect(
            try sent(server, CurlCommand(method: method, url: server.baseURL + "/status/204")).method == method.rawValue
        )
        // curl waits for the body of a HEAD if only the method's name is given.
        if method == .head { return }
        let command = CurlCommand(method: method, url: server.baseURL + "/status/204", body: .bytes([0x61]))
        let request = try sent(server, command)
        #expect(request.method == method.rawValue && request.body == [0x61])
    }

    @Test func filesAndInputAreTheBody() throws {
        let server = try LoopbackServer()
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "ferry it's @\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let bytes: [UInt8] = [0, 0x0D, 0x0A, 0xFF, 0x40]
        let file = folder.appending(path: "@a \"b\\c;type=x.bin").path
        try Data(bytes).write(to: URL(filePath: file))
        let url = server.baseURL + "/hello"
        let whole = try sent(server, CurlCommand(method: .put, url: url, body: .file(path: file)))
        #expect(whole.body == bytes && whole.method == "PUT" && fields(whole) == [])
        for method: HTTPMethod in [.put, .post] {
            let piped = try sent(
                server, CurlCommand(method: method, url: url, body: .input), before: "printf 'a\\000b' | ")
            #expect(piped.body == [0x61, 0, 0x62] && piped.method == method.rawValue)
            #expect(piped.headers["Transfer-Encoding"] == "chunked" && fields(piped) == [])
        }
        let form = try sent(
            server,
            CurlCommand(
                method: .post, url: url, headers: ["Content-Type": "multipart/form-data; boundary=other"],
                body: .multipart([.init(name: "f", content: .file(path: file), fileName: "n.bin", contentType: "a/b")]))
        )
        let parts = try self.parts(form)
        #expect(parts.count == 1)
        #expect(parts[0].head == "Content-Disposition: form-data; name=\"f\"; filename=\"n.bin\"\r\nContent-Type: a/b")
        #expect(parts[0].body == bytes)
    }

    @Test func partsOfAnyContentArrive() throws {
        let server = try LoopbackServer(.init(recording: 1 << 20))
        var given: [CurlCommand.Part] = []
        for (index, text) in Self.nasty.enumerated() {
            given.append(.init(name: "p\(index)", content: .bytes(Array(text.utf8))))
            given.append(.init(name: "t\(index)", content: .bytes(Array(text.utf8)), contentType: "text/plain"))
            given.append(
                .init(name: "f\(index)", content: .bytes(Array(text.utf8)), fileName: "a;b.txt", contentType: "x/y"))
        }
        given.append(.init(name: "zero", content: .bytes([0, 1, 2])))
        given.append(.init(name: "dash", content: .bytes([0x2D, 0x76, 0])))
        given.append(.init(name: "zerof", content: .bytes([0, 1, 2]), fileName: "z.bin", contentType: "x/y"))
        given.append(.init(name: "a=b", content: .bytes([0x3D])))
        let fields: Headers = ["X-One": "a;b, \"c\" \\d", "X-Two": "it's; type=x/z", "X-One": "again"]
        given.append(.init(name: "h", content: .bytes(Array("text".utf8)), headers: fields))
        given.append(
            .init(name: "hf", content: .bytes([0, 1]), fileName: "h.bin", contentType: "x/y", headers: fields))
        given.append(.init(name: "hz", content: .bytes([0, 2]), headers: fields))
        let request = try sent(
            server, CurlCommand(method: .post, url: server.baseURL + "/hello", body: .multipart(given)))
        let parts = try self.parts(request)
        try #require(parts.count == given.count)
        for (part, given) in zip(parts, given) {
            guard case .bytes(let bytes) = given.content else { continue }
            #expect(part.body == bytes, "\(given)")
            let name = given.name == "a=b" ? "a%3Db" : given.name
            #expect(part.head.hasPrefix("Content-Disposition: form-data; name=\"\(name)\""))
            #expect(part.head.contains("filename=") == (given.fileName != nil))
            let lines = part.head.split(separator: "\r\n").dropFirst().map(String.init)
            if let type = given.contentType { #expect(lines.contains("Content-Type: \(type)")) }
            #expect(lines.filter { $0.hasPrefix("X-") } == given.headers.map { "\($0.name): \($0.value)" })
        }
    }

    @Test func theProxiesOfTheEnvironmentDoNotApply() throws {
        let (server, proxy, other) = (try LoopbackServer(), try LoopbackServer(), try LoopbackServer())
        var command = CurlCommand(url: server.baseURL + "/hello")
        let request = try sent(
            server, command, environment: ["http_proxy": proxy.baseURL, "all_proxy": proxy.baseURL])
        #expect(request.target == "/hello" && proxy.requestCount == 0)
        command.options.proxy = proxy.baseURL
        let proxied = try sent(
            proxy, command, environment: ["http_proxy": other.baseURL, "no_proxy": "*", "NO_PROXY": "*"])
        #expect(proxied.target == server.baseURL + "/hello")
        #expect(server.requestCount == 1 && other.requestCount == 0)
    }

    @Test func aRedactedCommandIsStillOne() throws {
        let server = try LoopbackServer()
        let command = CurlCommand(
            method: .post, url: server.baseURL + "/x?token=canary", headers: ["Cookie": "canary"],
            body: .bytes(Array("canary".utf8)))
        #expect(try run(command.text()).code == 0)
        let request = try #require(server.requests.last)
        #expect(
            request.target == "/x?token=***" && request.headers["Cookie"] == "***" && request.text == "*** (6 bytes)")
    }

    private func parts(_ request: LoopbackRequest) throws -> [(head: String, body: [UInt8])] {
        let type = try #require(request.headers["Content-Type"])
        #expect(request.headers.values(of: "Content-Type").count == 1)
        let boundary = Array(("\r\n--" + type.split(separator: "boundary=")[1]).utf8)
        var parts: [(head: String, body: [UInt8])] = []
        var rest = ([0x0D, 0x0A] + request.body)[...]
        var sections: [ArraySlice<UInt8>] = []
        while let found = rest.firstRange(of: boundary) {
            sections.append(rest[..<found.lowerBound])
            rest = rest[found.upperBound...]
        }
        for section in sections.dropFirst() {
            let end = try #require(section.firstRange(of: Array("\r\n\r\n".utf8)))
            let head = String(decoding: section[..<end.lowerBound].dropFirst(2), as: UTF8.self)
            parts.append((head, Array(section[end.upperBound...])))
        }
        return parts
    }
}

extension String {
    fileprivate var trimmed: String {
        var text = self[...]
        while text.first == " " || text.first == "\t" { text = text.dropFirst() }
        while text.last == " " || text.last == "\t" { text = text.dropLast() }
        return String(text)
    }
}

extension LoopbackServer.Options {
    fileprivate init(recording bytes: Int) {
        self.init()
        recordedBodyBytes = bytes
    }
}
