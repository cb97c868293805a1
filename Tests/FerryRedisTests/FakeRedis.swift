import FerrySynchronization
import Foundation
import Glibc

/// A server on loopback that understands the storage's commands, and replies by a script.
final class FakeRedis: Sendable {
    /// How a command is handled.
    enum Answer: Sendable {
        /// Like a correct server.
        case honest
        case bytes([UInt8])
        /// Without any reply.
        case silence
        case close
        /// This much of the reply, and then the same byte for ever.
        case endless([UInt8], UInt8)

        static func text(_ text: String) -> Answer { .bytes(Array(text.utf8)) }
    }

    private struct State {
        var values: [String: [UInt8]] = [:]
        var commands: [[String]] = []
        var scanned: [String] = []
        var sockets: Set<Int32> = []
        var listeners: [Int32: String] = [:]
        var script: @Sendable ([String]) -> Answer
        var isStopped = false
    }

    let path: String
    private let state: Mutex<State>
    private let listener: Int32

    /// At a Unix socket of its own, or at this one.
    init(at path: String? = nil, _ script: @escaping @Sendable ([String]) -> Answer = { _ in .honest }) {
        self.path = path ?? Self.freePath()
        state = Mutex(State(script: script))
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(self.path.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        unlink(self.path)
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
        }
        precondition(isBound == 0 && listen(listener, 64) == 0, "no socket at \(self.path)")
        Thread.detachNewThread { [self] in accept() }
    }

    static func freePath() -> String {
        FileManager.default.temporaryDirectory.appending(path: "ferry-redis-\(UUID().uuidString.prefix(8))").path
    }

    func script(_ script: @escaping @Sendable ([String]) -> Answer) { state.withLock { $0.script = script } }

    /// All commands received, without the names' digests if they are not asked for.
    var commands: [[String]] { state.withLock { $0.commands } }
    func count(_ name: String) -> Int { commands.count { $0.first == name } }
    var names: [String] { state.withLock { $0.values.keys.sorted() } }
    var connections: Int { state.withLock { $0.sockets.count } }

    /// The value stored under a name.
    subscript(name: String) -> [UInt8]? {
        get { state.withLock { $0.values[name] } }
        set { state.withLock { $0.values[name] = newValue } }
    }

    /// Closes open connections, and stops listening.
    func stop() {
        let sockets = state.withLock { state in
            state.isStopped = true
            return state.sockets
        }
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        shutdown(listener, Int32(SHUT_RDWR))
        unlink(path)
    }

    private func accept() {
        while true {
            let socket = Glibc.accept(listener, nil, nil)
            if socket < 0 { break }
            let isTaken = state.withLock { state in
                if !state.isStopped { state.sockets.insert(socket) }
                return !state.isStopped
            }
            if !isTaken {
                close(socket)
                break
            }
            Thread.detachNewThread { [self] in
                serve(socket)
                state.withLock { state in
                    state.sockets.remove(socket)
                    state.listeners[socket] = nil
                    close(socket)
                }
            }
        }
        close(listener)
    }

    private func serve(_ socket: Int32) {
        var reader = Reader(socket)
        while let command = reader.command() {
            let words = command.map { String(decoding: $0, as: UTF8.self) }
            let script = state.withLock { state in
                state.commands.append(words)
                return state.script
            }
            switch script(words) {
            case .honest: send(honest(command, words, socket), socket)
            case .bytes(let bytes): send(bytes, socket)
            case .silence: break
            case .close: return
            case .endless(let start, let byte):
                send(start, socket)
                let more = Array(repeating: byte, count: 65_536)
                while send(more, socket) {}
                return
            }
        }
    }

    @discardableResult
    private func send(_ bytes: [UInt8], _ socket: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    // MARK: A correct server

    static func bulk(_ bytes: [UInt8]) -> [UInt8] { Array("$\(bytes.count)\r\n".utf8) + bytes + Array("\r\n".utf8) }

    private func honest(_ command: [[UInt8]], _ words: [String], _ socket: Int32) -> [UInt8] {
        state.withLock { state in
            switch words[0] {
            // Of a missing key it is the empty text.
            case "GETRANGE": Self.bulk(Array((state.values[words[1]] ?? []).prefix((Int(words[3]) ?? -1) + 1)))
            case "SET":
                {
                    if words.contains("NX"), state.values[words[1]] != nil { return Array("$-1\r\n".utf8) }
                    state.values[words[1]] = command[2]
                    return Array("+OK\r\n".utf8)
                }()
            case "PSETEX":
                {
                    state.values[words[1]] = command[3]
                    return Array("+OK\r\n".utf8)
                }()
            case "EVAL":
                {
                    if state.values[words[3]] == command[4] { state.values[words[3]] = nil }
                    return Array(":1\r\n".utf8)
                }()
            case "UNLINK":
                Array(":\(words.dropFirst().count { state.values.removeValue(forKey: $0) != nil })\r\n".utf8)
            case "SCAN":
                {
                    let start = words[3].prefix { $0 != "[" }.filter { $0 != "\\" }
                    let from = Int(words[1]) ?? 0
                    // What is removed meanwhile shifts nothing.
                    if from == 0 { state.scanned = state.values.keys.sorted() }
                    let names = state.scanned.filter { $0.hasPrefix(start) }
                    let part = names.dropFirst(from).prefix(2)
                    let next = from + 2 < names.count && !part.isEmpty ? from + 2 : 0
                    return Array("*2\r\n".utf8) + Self.bulk(Array("\(next)".utf8))
                        + Array("*\(part.count)\r\n".utf8) + part.flatMap { Self.bulk(Array($0.utf8)) }
                }()
            case "SUBSCRIBE":
                {
                    state.listeners[socket] = words[1]
                    return Array("*3\r\n".utf8) + Self.bulk(Array("subscribe".utf8)) + Self.bulk(command[1])
                        + Array(":1\r\n".utf8)
                }()
            case "PUBLISH":
                {
                    let message =
                        Array("*3\r\n".utf8) + Self.bulk(Array("message".utf8)) + Self.bulk(command[1])
                        + Self.bulk(command[2])
                    let to = state.listeners.filter { $0.value == words[1] }.keys
                    for socket in to { send(message, socket) }
                    return Array(":\(to.count)\r\n".utf8)
                }()
            default: Array("+OK\r\n".utf8)
            }
        }
    }

    /// Reads commands: arrays of texts.
    private struct Reader {
        let socket: Int32
        var bytes: [UInt8] = []

        init(_ socket: Int32) { self.socket = socket }

        mutating func command() -> [[UInt8]]? {
            guard let count = number("*") else { return nil }
            var parts: [[UInt8]] = []
            for _ in 0..<count {
                guard let length = number("$"), let part = take(length + 2) else { return nil }
                parts.append(part.dropLast(2))
            }
            return parts
        }

        private mutating func number(_ sign: Character) -> Int? {
            while true {
                if let end = bytes.firstIndex(of: 0x0A) {
                    let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
                    bytes.removeFirst(end + 1)
                    return line.first == sign ? Int(line.dropFirst()) : nil
                }
                if !more() { return nil }
            }
        }

        private mutating func take(_ count: Int) -> [UInt8]? {
            while bytes.count < count { if !more() { return nil } }
            defer { bytes.removeFirst(count) }
            return Array(bytes.prefix(count))
        }

        private mutating func more() -> Bool {
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = recv(socket, &piece, piece.count, 0)
            if count > 0 { bytes += piece.prefix(count) }
            return count > 0
        }
    }
}
