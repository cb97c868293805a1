internal import Ferry
internal import FerryTesting
internal import FoundationEssentials

/// The file of `ferry serve --script`: `{"scripts": [rule, …]}`, see `LoopbackScript.Rule`. Mistakes are reported by
/// file and line, with the position in the document and the expected value.
struct ServeScript {
    private struct File: Decodable {
        var scripts: [LoopbackScript.Rule]
    }

    private static let members = ["path", "connection", "connections", "uses", "steps"]

    private let file: JSONFile
    private let document: JSON

    static func rules(at path: String) throws(InputError) -> [LoopbackScript.Rule] {
        try ServeScript(JSONFile(at: path)).rules()
    }

    init(_ file: JSONFile) throws(InputError) {
        self.file = file
        document = try file.document()
    }

    func rules() throws(InputError) -> [LoopbackScript.Rule] {
        try checkNames()
        do {
            return try JSONDecoder().decode(File.self, from: file.text).scripts
        } catch let error as DecodingError {
            throw fault(error)
        } catch {
            throw InputError("\(file.path): \(error)")
        }
    }

    /// A misspelled member would be ignored: a rule without its path applies to every connection.
    private func checkNames() throws(InputError) {
        guard let object = document.object else {
            throw file.fault(document, "a script: expected an object, found \(document.kind)")
        }
        for (name, value) in object where name != "scripts" {
            throw file.fault(value, "unknown member '\(name)' in a script; the only member is scripts")
        }
        try checkOnce(document)
        guard let rules = document["scripts"]?.array else { return }
        for rule in rules {
            guard let object = rule.object else { continue }
            try checkOnce(rule)
            for step in rule["steps"]?.array.map(Array.init) ?? [] { try checkOnce(step) }
            for (name, value) in object where !Self.members.contains(name) {
                let known = Self.members.joined(separator: ", ")
                throw file.fault(value, "unknown member '\(name)' in a rule; members are \(known)")
            }
            let places = Self.members.prefix(3).filter { rule[$0] != nil }
            if places.count > 1 { throw file.fault(rule, "'\(places[0])' and '\(places[1])' cannot be combined") }
        }
    }

    /// Of two members of one name, only one would count.
    private func checkOnce(_ json: JSON) throws(InputError) {
        var names: Set<String> = []
        guard let object = json.object else { return }
        for (name, value) in object where !names.insert(name).inserted {
            throw file.fault(value, "'\(name)' appears twice")
        }
    }

    private func fault(_ error: DecodingError) -> InputError {
        switch error {
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            let place = value(at: context.codingPath)
            return fault(context.codingPath, "expected \(Self.words(type)), found \(place.kind)")
        case .keyNotFound(let key, let context): return fault(context.codingPath, "'\(key.stringValue)' is missing")
        case .dataCorrupted(let context): return fault(context.codingPath, context.debugDescription)
        @unknown default: return InputError("\(file.path): \(error)")
        }
    }

    /// `scripts[0].steps[2]: …`
    private func fault(_ path: [any CodingKey], _ message: String) -> InputError {
        let place = path.reduce(into: "") { text, key in
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += (text.isEmpty ? "" : ".") + key.stringValue
            }
        }
        return file.fault(value(at: path), (place.isEmpty ? "a script" : place) + ": " + message)
    }

    /// The value at a path, as far as it exists.
    private func value(at path: [any CodingKey]) -> JSON {
        path.reduce(document) { value, key in
            guard let index = key.intValue else { return value[key.stringValue] ?? value }
            return value.array.flatMap { $0.dropFirst(index).first { _ in true } } ?? value
        }
    }

    private static func words(_ type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Int.Type: "a whole number"
        case is [Any].Type: "an array"
        default: "an object"
        }
    }
}
