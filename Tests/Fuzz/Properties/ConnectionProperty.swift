import CCoreParts

/// A program of requests to the native engine and of its server's actions (``parts_play``). Every transfer ends once.
/// Requests arrive as they were made. A response that a simple reader understands is delivered as that reader reads it;
/// other bodies contain nothing that was not sent. No connection is used after a response that ends it, and nothing is
/// left behind.
func checkConnection(_ bytes: UnsafeRawBufferPointer) throws {
    let played = Played(bytes)
    let raw = played.raw
    try promise(raw.strays == 0, "\(raw.strays) callbacks of no transfer, or after its result")
    try promise(raw.running == 0, "\(raw.running) transfers without an end")
    try promise(
        raw.left_transfers == 0 && raw.left_sockets == 0,
        "\(raw.left_transfers) transfers and \(raw.left_sockets) sockets are left")
    if raw.crowded { return }
    var last: [Int: (connection: Int, reply: PlainReply)] = [:]
    for (number, connection) in played.connections.enumerated() {
        try check(connection, number, played, &last)
    }
    for (id, transfer) in played.transfers.enumerated() {
        try promise(transfer.raw.finished == 1, "transfer \(id) ended \(transfer.raw.finished) times")
        // A failure has no collected body, but counts its bytes.
        if transfer.raw.code == 0 || !transfer.body.isEmpty {
            try promise(transfer.raw.counted == transfer.body.count, "transfer \(id) counts other bytes than came")
        }
        guard let (number, reply) = last[id] else {
            // A busy server may respond and close before the request can be sent.
            let isSent = played.connections.contains { !$0.sent.isEmpty && isPart(transfer.body, of: $0.sent) }
            try promise(transfer.raw.code != 0 || isSent, "transfer \(id) has a response to nothing")
            continue
        }
        try expectDelivered(transfer, id, reply, of: played.connections[number])
    }
}

private func check(
    _ connection: PlayedConnection, _ number: Int, _ played: Played,
    _ last: inout [Int: (connection: Int, reply: PlainReply)]
) throws {
    var reader = PlainReader(bytes: connection.sent)
    var understood = true
    let requests = try PlainRequests(connection.received, played.transfers).ids
    for (place, id) in requests.enumerated() {
        let transfer = played.transfers[id]
        let reply = understood ? reader.next(toHead: transfer.method == "HEAD") : .unknown
        if last[id] != nil {
            try promise(
                transfer.raw.repeatable || transfer.raw.expects, "transfer \(id) was sent twice, and must not be")
        }
        last[id] = (number, reply)
        if case .whole(let status, _, let persists) = reply {
            if place < requests.count - 1 {
                try promise(persists && !transfer.raw.closes, "a connection is used again after its last response")
                // A response that came during the upload is a response like any other, and is delivered.
                let isRefusal = status == 417 && transfer.raw.expects && transfer.raw.status != 417
                try promise(!isRefusal, "a connection is used again after 417")
            }
        } else {
            if case .part = reply, place < requests.count - 1 {
                throw BrokenPromise(description: "a connection is used again before its response has ended")
            }
            understood = false
        }
        if place < requests.count - 1 {
            try promise(transfer.raw.code == 0, "a connection is used again after transfer \(id) failed")
        }
    }
}

private func expectDelivered(
    _ transfer: PlayedTransfer, _ id: Int, _ reply: PlainReply, of connection: PlayedConnection
) throws {
    let raw = transfer.raw
    switch reply {
    case .whole(let status, let body, _):
        if raw.code == 0 {
            try promise(raw.status == status, "transfer \(id) has status \(raw.status), sent was \(status)")
            try promise(transfer.body == body, "transfer \(id) has another body than was sent")
        }
        try promise(
            raw.code != FERRY_E_MALFORMED_RESPONSE && raw.code != FERRY_E_HEAD_TOO_LARGE,
            "transfer \(id): a plain response is refused with \(raw.code), \(raw.detail)")
        if !connection.isReset {
            try promise(
                raw.code != FERRY_E_INCOMPLETE_BODY && raw.code != FERRY_E_CONNECTION_CLOSED,
                "transfer \(id): a whole response was missed: \(raw.code)")
        }
        try promise(body.starts(with: transfer.body), "transfer \(id) has bytes that its body has not")
    case .part(let body):
        try promise(raw.code != 0, "transfer \(id) has succeeded with a part of its response")
        try promise(body.starts(with: transfer.body), "transfer \(id) has bytes that its body has not")
    case .unknown:
        try promise(isPart(transfer.body, of: connection.sent), "transfer \(id) has bytes that were not sent")
    }
}

/// Whether all the bytes are contained in the others, in order.
private func isPart(_ bytes: [UInt8], of sent: [UInt8]) -> Bool {
    var rest = sent[...]
    for byte in bytes {
        guard let at = rest.firstIndex(of: byte) else { return false }
        rest = rest[(at + 1)...]
    }
    return true
}

// MARK: - Requests, read by simple means

/// The numbers of the requests that a server has received. Each must be as in the program.
private struct PlainRequests {
    private(set) var ids: [Int] = []
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8], _ transfers: [PlayedTransfer]) throws {
        rest = bytes[...]
        while let head = takeHead() {
            let line = (head.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
            try promise(line.count == 3 && line[2] == "HTTP/1.1", "a request with the line \(head.first ?? "")")
            let id = try promised(Int(line[1].dropFirst()), "a request for \(line[1])")
            try promise(id < transfers.count && line[0] == transfers[id].method, "a request of no transfer")
            ids.append(id)
            let length = head.first { $0.hasPrefix("Content-Length: ") }.flatMap { Int($0.dropFirst(16)) }
            let isWhole =
                head.contains("Transfer-Encoding: chunked") ? try takeChunks() : try takeBody(length ?? 0, from: 0)
            if !isWhole { return }
        }
        let start = String(decoding: rest.prefix(5), as: UTF8.self)
        try promise(["GET /", "HEAD ", "POST "].contains { $0.hasPrefix(start) || start == $0 }, "a request \(start)")
    }

    private mutating func takeLine() -> String? {
        guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        defer { rest = rest[(end + 1)...] }
        return String(decoding: rest[..<end].dropLast(), as: UTF8.self)
    }

    private mutating func takeHead() -> [String]? {
        let start = rest
        var lines: [String] = []
        while let line = takeLine() {
            if line.isEmpty { return lines }
            lines.append(line)
        }
        rest = start
        return nil
    }

    private mutating func takeBody(_ length: Int, from offset: Int) throws -> Bool {
        let body = rest.prefix(length)
        rest = rest.dropFirst(length)
        let same = body.withUnsafeBytes {
            parts_as_pulled($0.bindMemory(to: CChar.self).baseAddress, body.count, offset)
        }
        try promise(same == body.count, "a request with another body")
        return body.count == length
    }

    private mutating func takeChunks() throws -> Bool {
        var offset = 0
        while let line = takeLine() {
            let size = try promised(Int(line, radix: 16), "a chunk of \(line)")
            if size == 0 { return takeLine() != nil }
            if try !takeBody(size, from: offset) { return false }
            offset += size
            if rest.count < 2 { return false }
            try promise(takeLine() == "", "a chunk without its end")
        }
        return false
    }
}

// MARK: - Responses, read by simple means

private enum PlainReply {
    case whole(status: Int, body: [UInt8], persists: Bool)
    /// A part of a body, of which more was to come.
    case part(body: [UInt8])
    /// Not simple enough for this reader.
    case unknown
}

/// Reads only the simplest responses of HTTP/1.1.
private struct PlainReader {
    private var rest: ArraySlice<UInt8>

    init(bytes: [UInt8]) { rest = bytes[...] }

    mutating func next(toHead: Bool) -> PlainReply {
        var heads = 0
        while true {
            guard let lines = takeHead() else { return rest.isEmpty ? .part(body: []) : .unknown }
            guard let head = PlainHead(lines), head.status != 101, heads < 5 else { return .unknown }
            heads += 1
            if head.status >= 200 { return body(of: head, toHead: toHead) }
        }
    }

    private mutating func body(of head: PlainHead, toHead: Bool) -> PlainReply {
        if toHead || head.status == 204 || head.status == 304 {
            return .whole(status: head.status, body: [], persists: head.persists)
        }
        if head.isChunked { return chunks(of: head) }
        guard let length = head.length else {
            defer { rest = rest[rest.endIndex...] }
            return .whole(status: head.status, body: Array(rest), persists: false)
        }
        let body = Array(rest.prefix(length))
        rest = rest.dropFirst(length)
        if body.count < length { return .part(body: body) }
        return .whole(status: head.status, body: body, persists: head.persists)
    }

    private mutating func chunks(of head: PlainHead) -> PlainReply {
        var body: [UInt8] = []
        while let line = takeLine() {
            guard (1...4).contains(line.count), let size = Int(line, radix: 16) else { return .unknown }
            body += rest.prefix(size)
            let isCut = rest.count < size + 2
            rest = rest.dropFirst(size)
            guard rest.starts(with: Array("\r\n".utf8).prefix(rest.count)) else { return .unknown }
            if isCut { return .part(body: body) }
            rest = rest.dropFirst(2)
            if size == 0 { return .whole(status: head.status, body: body, persists: head.persists) }
        }
        return rest.isEmpty ? .part(body: body) : .unknown
    }

    /// A line of printable characters that ends with CR LF.
    private mutating func takeLine() -> String? {
        guard let end = rest.firstIndex(of: UInt8(ascii: "\n")), end > rest.startIndex,
            rest[end - 1] == UInt8(ascii: "\r"), rest[..<(end - 1)].allSatisfy({ (0x20..<0x7f).contains($0) })
        else { return nil }
        defer { rest = rest[(end + 1)...] }
        return String(decoding: rest[..<(end - 1)], as: UTF8.self)
    }

    private mutating func takeHead() -> [String]? {
        let start = rest
        var lines: [String] = []
        while let line = takeLine() {
            if line.isEmpty { return lines }
            lines.append(line)
        }
        rest = start
        return nil
    }
}

private struct PlainHead {
    private(set) var status = 0
    private(set) var length: Int?
    private(set) var isChunked = false
    private(set) var persists = true

    /// Nil if it is not simple.
    init?(_ lines: [String]) {
        let line = (lines.first ?? "").split(separator: " ", maxSplits: 2)
        guard line.count >= 2, line[0] == "HTTP/1.1", line[1].count == 3, let status = Int(line[1]),
            (100...999).contains(status), lines[0].hasPrefix("HTTP/1.1 \(status)"), lines.count < 20
        else { return nil }
        self.status = status
        for line in lines.dropFirst() {
            let parts = line.split(separator: ": ", maxSplits: 1, omittingEmptySubsequences: false)
            let name = parts[0].lowercased()
            guard parts.count == 2, !name.isEmpty, name.allSatisfy({ $0.isLetter || $0 == "-" }) else { return nil }
            switch name {
            case "content-length":
                guard length == nil, (1...5).contains(parts[1].count), parts[1].allSatisfy(\.isNumber) else {
                    return nil
                }
                length = Int(parts[1])
            case "transfer-encoding":
                guard !isChunked, parts[1] == "chunked" else { return nil }
                isChunked = true
            case "connection":
                guard parts[1] == "close" else { return nil }
                persists = false
            default: break
            }
        }
        if isChunked && length != nil { return nil }
    }
}

// MARK: - The outcome of a program

private struct PlayedTransfer {
    let raw: parts_transfer
    let method: String
    let body: [UInt8]
}

private struct PlayedConnection {
    let sent: [UInt8]
    let received: [UInt8]
    let isReset: Bool
}

private final class Played {
    private(set) var raw = parts_played()
    let transfers: [PlayedTransfer]
    let connections: [PlayedConnection]

    init(_ bytes: UnsafeRawBufferPointer) {
        var raw = parts_played()
        parts_play(&raw, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count)
        transfers = UnsafeBufferPointer(start: raw.transfers, count: Int(raw.transfer_count)).map {
            PlayedTransfer(
                raw: $0, method: $0.method.map { String(cString: $0) } ?? "",
                body: Array(UnsafeRawBufferPointer(start: $0.body, count: $0.body_length)))
        }
        connections = UnsafeBufferPointer(start: raw.connections, count: Int(raw.connection_count)).map {
            PlayedConnection(
                sent: Array(UnsafeRawBufferPointer(start: $0.sent, count: $0.sent_length)),
                received: Array(UnsafeRawBufferPointer(start: $0.received, count: $0.received_length)),
                isReset: $0.reset)
        }
        self.raw = raw
    }

    deinit { parts_played_free(&raw) }
}
