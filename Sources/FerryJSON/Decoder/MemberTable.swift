internal import CFerryJSON

/// The members of an object by their names, for objects with many, and where names are converted.
final class MemberTable {
    /// A name without a string of its own: bytes of the tape, or of the key that is looked for.
    private struct Name: Hashable {
        let bytes: UnsafeBufferPointer<UInt8>

        static func == (a: Name, b: Name) -> Bool { a.bytes.elementsEqual(b.bytes) }

        func hash(into hasher: inout Hasher) { hasher.combine(bytes: UnsafeRawBufferPointer(bytes)) }
    }

    /// Objects with more members than this are looked up by a table.
    static let threshold = 16

    /// The names in the order of the document, each once.
    private(set) var names: [String] = []
    private var plain: [Name: Int] = [:]
    private var converted: [String: Int] = [:]
    private let isConverted: Bool

    init(of object: Int, in session: DecodingSession, convertingKeys: Bool) {
        let tape = session.tape
        isConverted = convertingKeys
        var path: [any CodingKey] = []
        if convertingKeys, case .custom = session.options.keyDecodingStrategy { path = session.codingPath(to: object) }
        let end = ferry_json_close(tape, object)
        var order: [(name: String, value: Int)] = []
        var key = object + 1
        while key < end {
            if isConverted {
                let name = Self.convert(tape.string(at: key), path: path, session.options.keyDecodingStrategy)
                converted[name] = key + 1
                order.append((name, key + 1))
            } else {
                plain[Name(bytes: tape.utf8(at: key))] = key + 1
                order.append((tape.string(at: key), key + 1))
            }
            key = ferry_json_after(tape, key + 1)
        }
        names = order.filter { find($0.name) == $0.value }.map(\.name)
    }

    /// The value of the last member with this name, or 0.
    func find(_ name: String) -> Int {
        if isConverted { return converted[name] ?? 0 }
        var name = name
        return name.withUTF8 { plain[Name(bytes: $0)] ?? 0 }
    }

    private static func convert(
        _ key: String, path: [any CodingKey], _ strategy: FerryJSONDecoder.KeyDecodingStrategy
    ) -> String {
        switch strategy {
        case .useDefaultKeys: key
        case .convertFromSnakeCase: SnakeCase.camelCase(of: key)
        case .custom(let convert): convert(path + [PathKey(stringValue: key)]).stringValue
        }
    }
}
