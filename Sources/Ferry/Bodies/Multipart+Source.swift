import FerryTransport

extension Multipart: PulledBody {
    /// With the boundary in quotes where it is not a token (RFC 2046, 5.1.1).
    var contentType: String {
        let isToken = boundary.utf8.allSatisfy(ByteSet.token.contains)
        return "multipart/form-data; boundary=" + (isToken ? boundary : "\"\(boundary)\"")
    }

    var isReplayable: Bool { parts.allSatisfy(\.body.isReplayable) }

    func makeSource() throws(BodyFault) -> any BodySource {
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.allSatisfy(ByteSet.boundary.contains) else {
            throw BodyFault(code: .invalidRequest(.body), message: "the boundary is not one of RFC 2046")
        }
        var sources: [any BodySource] = []
        // Heads and small parts together: a source for each would be more object than bytes.
        var pending: [UInt8] = []
        for part in parts {
            pending.append(text: "--\(boundary)\r\n")
            try part.appendHead(to: &pending)
            let source = try part.body.makeSource()
            if let length = source.length, length <= Self.smallPart, source is MemorySource<[UInt8]> {
                pending.append(contentsOf: source.wholeInMemory)
            } else {
                sources.append(MemorySource(pending))
                sources.append(source)
                pending = []
            }
            pending.append(text: "\r\n")
        }
        pending.append(text: "--\(boundary)--\r\n")
        sources.append(MemorySource(pending))
        return SourceSequence(sources)
    }

    private static let smallPart = 4096
}

extension Multipart.Part {
    /// RFC 7578, 4.2, with the escapes of WHATWG's form encoding.
    fileprivate func appendHead(to bytes: inout [UInt8]) throws(BodyFault) {
        bytes.append(text: "Content-Disposition: form-data; name=\"")
        bytes.append(quoted: name)
        if let filename {
            bytes.append(text: "\"; filename=\"")
            bytes.append(quoted: filename)
        }
        bytes.append(text: "\"\r\n")
        if let contentType { try bytes.append(field: "Content-Type", contentType) }
        for field in headers {
            if equalNames(field.name, "Content-Disposition") || equalNames(field.name, "Content-Type") {
                throw BodyFault(
                    code: .invalidRequest(.headerName), message: "\(field.name) of a part is not among its headers")
            }
            try bytes.append(field: field.name, field.value)
        }
        bytes.append(text: "\r\n")
    }
}

extension ByteSet {
    /// RFC 2046, 5.1.1: without the space, which would be one more thing to get wrong.
    fileprivate static let boundary = ByteSet(
        "'()+_,-./:=?0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

extension [UInt8] {
    fileprivate mutating func append(text: String) { append(contentsOf: text.utf8) }

    /// What would end the quotes or the line is escaped, so that no name can say more than a name.
    fileprivate mutating func append(quoted text: String) {
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x0D, 0x0A: appendEscaped(byte)
            default: append(byte)
            }
        }
    }

    fileprivate mutating func append(field name: String, _ value: String) throws(BodyFault) {
        guard !name.isEmpty, name.utf8.allSatisfy(ByteSet.token.contains) else {
            throw BodyFault(
                code: .invalidRequest(.headerName), message: "the name of a part's header field is not a token")
        }
        for byte in value.utf8 where isControl(byte) && byte != 0x09 {
            throw BodyFault(
                code: .invalidRequest(.headerValue),
                message: "the value of the part's header field \(name) has a control character in it")
        }
        append(text: "\(name): \(value)\r\n")
    }
}
