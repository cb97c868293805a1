import FoundationEssentials

/// A Python server that reports what it received. It is behind nginx and squid, and sends challenges that nginx does
/// not support.
final class Upstream: Sendable {
    let port: Int
    let url: String
    private let process: ServerProcess

    init() throws {
        let (process, ports) = try ServerProcess.start(ports: 1) { folder, ports in
            let script = try String(contentsOfFile: ServerProcess.script("upstream.py"), encoding: .utf8)
            try folder.write(script, to: "upstream.py")
            try folder.write("", to: "record")
            return ["/usr/bin/python3", folder.file("upstream.py"), String(ports[0]), folder.file("record")]
        }
        self.process = process
        port = ports[0]
        url = "http://127.0.0.1:\(port)"
    }

    private static let started = Result { try Upstream() }

    /// Shared by all tests, which distinguish their requests by their targets.
    static var shared: Upstream { get throws { try started.get() } }

    /// The requests so far, in order of arrival. A request is listed before its response is sent.
    var requests: [Echo] {
        get throws {
            try process.folder.read("record").split(separator: "\n").map {
                try JSONDecoder().decode(Echo.self, from: Data($0.utf8))
            }
        }
    }

    /// Those whose target contains this.
    func requests(to part: String) throws -> [Echo] {
        try requests.filter { $0.target.contains(part) }
    }
}

/// A request as received by the upstream.
struct Echo: Decodable, Sendable {
    var method: String
    var target: String
    /// Name and value.
    var headers: [[String]]
    var length: Int
    /// Of the body.
    var sha256: String

    /// The value of the first field of this name.
    subscript(name: String) -> String? {
        headers.first { $0[0].lowercased() == name.lowercased() }?[1]
    }
}
