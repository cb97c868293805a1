import FerryJSON
import FoundationEssentials

@testable import FerryCommand

/// An accepted plan only refers to names in it; an error names a line of the file.
func checkPlan(_ bytes: UnsafeRawBufferPointer) throws {
    let text = Data(bytes)
    do {
        let plan = try PlanReader(path: "file", text: text).plan()
        try promise((0...PlanReader.longest).contains(plan.root.count), "a plan of \(plan.root.count) runs")
        for name in plan.root.names { try promise(plan.requests[name] != nil, "no request by the name \(name)") }
        for request in plan.requests.values {
            for place in request.places { try promise(!place.words.contains(""), "a place without a name") }
        }
    } catch let error as InputError {
        try expectLine(error, in: text)
    }
}

/// So does the error of a schema; an accepted schema can be used, also on itself, and with the formats that it names.
func checkSchemaFile(_ bytes: UnsafeRawBufferPointer) throws {
    let text = Data(bytes)
    try checkAssertedSchema(bytes)
    do throws(InputError) {
        let schema = try SchemaFile.schema(of: text, path: "file")
        for sample in ["null", "{\"a\":[1,\"x\"]}", "[]", "\"abc\"", "-1.5"] {
            try? schema.check(JSON(parsing: Array(sample.utf8)))
        }
    } catch {
        try expectLine(error, in: text)
    }
}

private func checkAssertedSchema(_ bytes: UnsafeRawBufferPointer) throws {
    guard let document = try? JSON(parsing: bytes, spare: 0) else { return }
    do throws(JSONSchemaError) {
        let schema = try JSONSchema(document: document, assertingFormats: true)
        try? schema.check(document)
        for text in ["2024-02-29T23:59:60Z", "a.b@c.de", "http://[::1]:1/%20?#", "P1DT1S", "/~01", "(a|b)*c{2}"] {
            try? schema.check(JSON(text))
        }
        let deep = String(repeating: #"{"a":["#, count: 500) + String(repeating: "]}", count: 500)
        try? schema.check(JSON(parsing: Array(deep.utf8)))
    } catch {
        try promise(error.description.hasPrefix("$"), "an error without a place")
        try promise(document.value(atPointer: error.pointer) != nil, "an error in another place: \(error)")
    }
}

/// `file:LINE: what`
private func expectLine(_ error: InputError, in text: Data) throws {
    let words = error.message.split(separator: ":", maxSplits: 2)
    let line = words.count == 3 && words[0] == "file" ? Int(words[1]) : nil
    let lines = 1 + text.count { $0 == UInt8(ascii: "\n") }
    try promise(line.map { (1...lines).contains($0) } ?? false, "no line of the file: \(error.message)")
}
