internal import FoundationEssentials

/// A step of a coding path for which the decoded type has no key.
///
/// Small enough for an existential without an allocation, because each error has a path.
struct PathKey: CodingKey {
    private enum Kind {
        case name(String)
        /// A key of a dictionary, which is an integer too if it reads like one.
        case member(String)
        case integer(Int)
        case position(Int)
    }

    private let kind: Kind

    private init(_ kind: Kind) { self.kind = kind }

    init(stringValue: String) { kind = .name(stringValue) }
    init(intValue: Int) { kind = .integer(intValue) }

    /// A key of a dictionary.
    init(member: String) { kind = .member(member) }

    /// An element of an array.
    init(position: Int) { kind = .position(position) }

    var stringValue: String {
        switch kind {
        case .name(let name), .member(let name): name
        case .integer(let integer): "\(integer)"
        case .position(let position): "Index \(position)"
        }
    }

    var intValue: Int? {
        switch kind {
        case .name: nil
        case .member(let name): Int(name)
        case .integer(let integer), .position(let integer): integer
        }
    }

    static let `super` = PathKey(stringValue: "super")
}

/// Turns `created_at` into `createdAt`, and back.
enum SnakeCase {
    /// Converts to snake case. A word begins at a capital letter. Of several capital letters in a row, the last begins
    /// a word if a small letter follows.
    static func snakeCase(of key: String) -> String {
        let letters = Array(key)
        var words: [ArraySlice<Character>] = []
        var (begin, place) = (0, 1)
        while place < letters.count {
            guard let capital = letters[place...].firstIndex(where: \.isUppercase) else { break }
            words.append(letters[begin..<capital])
            begin = capital
            guard let small = letters[capital...].firstIndex(where: \.isLowercase) else { break }
            if small > capital + 1 {
                words.append(letters[capital..<small - 1])
                begin = small - 1
            }
            place = small + 1
        }
        words.append(letters[begin...])
        return words.map { String($0).lowercased() }.joined(separator: "_")
    }

    /// Converts to camel case. Underscores at either end are kept.
    static func camelCase(of key: String) -> String {
        let leading = key.prefix { $0 == "_" }
        guard leading.endIndex != key.endIndex else { return key }
        let trailing = key.suffix(key.reversed().prefix { $0 == "_" }.count)
        let words = key[leading.endIndex..<trailing.startIndex].split(separator: "_")
        guard words.count > 1 else { return key }
        // `capitalized` also begins a word after digits and punctuation, like Foundation's decoder: `icon2X`.
        let joined = words.dropFirst().reduce(words[0].lowercased()) { $0 + $1.capitalized }
        return leading + joined + trailing
    }
}

/// Converts the keys of documents to the names that types use.
final class KeyConverter {
    private let strategy: FerryJSONDecoder.KeyDecodingStrategy
    /// A document has few different keys, which appear again and again.
    private var known: [String: String] = [:]

    init(_ strategy: FerryJSONDecoder.KeyDecodingStrategy) { self.strategy = strategy }

    /// Whether the name depends on more than the key.
    var dependsOnPath: Bool { if case .custom = strategy { true } else { false } }

    /// The name for a key in the object at `path`. The path is used only if names depend on it.
    func convert(_ key: String, path: inout [any CodingKey]) -> String {
        switch strategy {
        case .useDefaultKeys: return key
        case .convertFromSnakeCase:
            if let name = known[key] { return name }
            let name = SnakeCase.camelCase(of: key)
            known[key] = name
            return name
        case .custom(let convert):
            path.append(PathKey(stringValue: key))
            let name = convert(path).stringValue
            path.removeLast()
            return name
        }
    }
}
