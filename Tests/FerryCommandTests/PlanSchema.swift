import Ferry
import Foundation
import Testing

@testable import FerryCommand

/// The schema of plans that the documentation names, as far as Ferry's own vocabulary goes: definitions are put where
/// they are named, steps so deep as tests nest them, and `propertyNames` and `not` are left to the reader.
enum PlanSchema {
    static let folder = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

    static let document = Result {
        try JSON(parsing: Data(contentsOf: URL(filePath: folder + "/Sources/FerryCommand/Schemas/plan.schema.json")))
    }

    static let whole = Result {
        let file = try document.get()
        return try JSONSchema(document: expanded(file, file["$defs"] ?? [:], depth: 0))
    }

    /// Reads a plan that must be as the schema says, too.
    static func plan(_ text: String) throws -> Plan {
        let plan = try PlanReader(path: "p.json", text: Data(text.utf8)).plan()
        try whole.get().check(JSON(parsing: text))
        return plan
    }

    private static func expanded(_ json: JSON, _ definitions: JSON, depth: Int) -> JSON {
        if let array = json.array { return JSON(array.map { expanded($0, definitions, depth: depth) }) }
        guard let object = json.object else { return json }
        if let name = json["$ref"]?.string?.split(separator: "/").last.map(String.init) {
            if depth > 7 { return true }
            return expanded(definitions[name] ?? false, definitions, depth: depth + (name == "step" ? 1 : 0))
        }
        var members: [(String, JSON)] = []
        for (key, value) in object where !["$defs", "propertyNames", "not"].contains(key) {
            members.append((key, expanded(value, definitions, depth: depth)))
        }
        return JSON(members: members)
    }
}
