import FoundationEssentials

/// The certificates of all servers and clients, made once for a run of the tests.
struct Certificates: Sendable {
    /// A certificate and what is right or wrong with it.
    enum Name: String, CaseIterable {
        /// For localhost, 127.0.0.1, ::1 and h0.localhost to h19.localhost.
        case valid
        /// Expired since yesterday.
        case expired
        /// For wrong.example.
        case wrongName = "wrong-name"
        /// Valid, but from an authority that nobody trusts.
        case untrusted
        /// A client certificate.
        case client
        /// A client certificate from the authority that nobody trusts.
        case stranger
    }

    /// `sha256//BASE64` of the public keys.
    private let pins: [String: String]

    /// A process that does nothing: the folder is removed with it.
    private let process: ServerProcess
    private var folder: ServerFolder { process.folder }

    private init() throws {
        (process, _) = try ServerProcess.start(ports: 0, sign: "done") { folder, _ in
            let script = try String(contentsOfFile: ServerProcess.script("certificates.py"), encoding: .utf8)
            try folder.write(script, to: "certificates.py")
            return ["/bin/sh", "-c", "/usr/bin/python3 certificates.py && touch done && exec sleep infinity"]
        }
        pins = try JSONDecoder().decode([String: String].self, from: Data(process.folder.read("pins.json").utf8))
    }

    private static let made = Result { try Certificates() }

    /// Shared by all tests.
    static var shared: Certificates { get throws { try made.get() } }

    /// The authority that a client has to trust.
    var authorityFile: String { folder.file("authority.pem") }

    /// The certificate with its chain.
    func file(_ name: Name) -> String { folder.file("\(name.rawValue).pem") }

    /// Its key.
    func key(_ name: Name) -> String { folder.file("\(name.rawValue).key") }

    /// The key of the client's certificate under the password `ferry`.
    var encryptedClientKey: String { folder.file("client.encrypted") }

    /// `sha256//BASE64` of its public key.
    func pin(_ name: Name) -> String { pins[name.rawValue] ?? "" }

    /// Copies certificate, key and authority to where a server may read them.
    func copy(_ names: [Name], to target: ServerFolder) throws {
        try target.write(folder.read("authority.pem"), to: "authority.pem")
        for name in names {
            for ending in ["pem", "key"] {
                try target.write(folder.read("\(name.rawValue).\(ending)"), to: "\(name.rawValue).\(ending)")
            }
        }
    }
}
