import Ferry
import Foundation
import Testing

@testable import FerryCommand

/// The schema of plans that the documentation names.
enum PlanSchema {
    static let folder = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

    static let document = Result {
        try JSON(parsing: Data(contentsOf: URL(filePath: folder + "/Sources/FerryCommand/Schemas/plan.schema.json")))
    }

    static let whole = Result {
        try JSONSchema(document: document.get())
    }

    /// Reads a plan that must also match the schema.
    static func plan(_ text: String) throws -> Plan {
        let plan = try PlanReader(path: "p.json", text: Data(text.utf8)).plan()
        try whole.get().check(JSON(parsing: text))
        return plan
    }
}
