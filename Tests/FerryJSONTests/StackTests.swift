import FerryJSON
import Foundation
import Testing

/// Deep documents on threads with a small stack: an error or a result, but never the end of the process.
@Suite struct StackTests {
    private static let deepest = 1023
    private static let arrays = String(repeating: "[", count: deepest) + String(repeating: "]", count: deepest)
    private static let objects =
        String(repeating: #"{"a":"#, count: deepest) + "1" + String(repeating: "}", count: deepest)

    private struct Tree: Codable, JSONConvertible {
        var a: [Tree]?
        init(json: JSON) throws { a = try json.value("a") }
    }

    private static let trees =
        String(repeating: #"{"a":["#, count: deepest / 2) + "{}" + String(repeating: "]}", count: deepest / 2)

    /// Runs `body` on a thread with this many kilobytes of stack, and waits for it.
    private func onStack(of kilobytes: Int, _ body: @escaping @Sendable () throws -> Void) throws {
        let done = DispatchSemaphore(value: 0)
        let failure = Failure()
        let thread = Thread {
            do { try body() } catch { failure.error = error }
            done.signal()
        }
        thread.stackSize = kilobytes * 1024
        thread.start()
        done.wait()
        if let error = failure.error { throw error }
    }

    /// Written before the semaphore is signalled, and read afterwards.
    private final class Failure: @unchecked Sendable { var error: (any Error)? }

    @Test(arguments: ["[", #"{"a":"#, #"[{"a":"#])
    func whatIsTooDeepIsRefused(_ open: String) throws {
        try onStack(of: 64) {
            for count in [1024, 100_000] {
                let error = #expect(throws: JSONSyntaxError.self) {
                    try JSON(parsing: String(repeating: open, count: count))
                }
                #expect(error?.reason == .tooDeep || error?.reason == .structure)
                #expect(throws: JSONSyntaxError.self) { try JSON(parsing: String(repeating: open, count: count) + "1") }
            }
        }
    }

    @Test(arguments: [arrays, objects])
    func whatIsJustNotTooDeepIsReadOnASmallStack(_ text: String) throws {
        // Compiled on this thread: its depth is that of the schema, which is the application's own.
        let schema = Self.deepSchema
        try? schema.check(1)
        try onStack(of: 64) {
            let json = try JSON(parsing: text)
            #expect(json.description == text)
            #expect(json.detached().description == text)
            var value = json
            while let inner = value[0] ?? value["a"] { value = inner }
            let error = #expect(throws: JSONMismatch.self) { try value.asString() }
            #expect((error?.path.utf8.count ?? 0) > 1023)
            try? schema.check(json)
        }
    }

    private static let deepSchema: JSONSchema = (0..<60).reduce(.any) { schema, depth in
        depth % 2 == 0 ? [schema] : .anyOf(.string, schema)
    }

    /// A recursive schema goes as deep as the document if the stack suffices; otherwise it reports that, also within
    /// `not`.
    @Test(arguments: [64, 256, 8192], [arrays, objects])
    func aRecursiveSchemaEndsWithAnErrorNotACrash(_ kilobytes: Int, _ text: String) throws {
        let rule = ##"{"items":{"$ref":"#/$defs/n"},"properties":{"a":{"allOf":[{"$ref":"#/$defs/n"}]}}}"##
        let open = try JSONSchema(document: JSON(parsing: ##"{"$ref":"#/$defs/n","$defs":{"n":\##(rule)}}"##))
        let negated = try JSONSchema(
            document: JSON(parsing: ##"{"not":{"$ref":"#/$defs/n"},"$defs":{"n":\##(rule)}}"##))
        let long = try JSONSchema(
            document: JSON(
                parsing: String(repeating: #"{"items":"#, count: 60) + ##"{"$ref":"#"}"##
                    + String(repeating: "}", count: 60)))
        let pattern = try JSONSchema(
            document: JSON(parsing: ##"{"items":{"$ref":"#"},"patternProperties":{"^(a|b.*c){1,9}$":{"$ref":"#"}}}"##))
        try onStack(of: kilobytes) {
            let json = try JSON(parsing: text)
            for (schema, fits) in [(open, true), (negated, false), (pattern, true), (long, true)] {
                do {
                    try schema.check(json)
                    #expect(fits)
                } catch let error as JSONMismatch {
                    if kilobytes == 8192 {
                        #expect(!fits && error.expected.contains("does not match"))
                    } else {
                        #expect(error.expected.contains("stack") || !fits)
                    }
                }
            }
        }
    }

    @Test(arguments: [256, 512, 8192]) func aDeepSchemaIsReadOrRefused(_ kilobytes: Int) throws {
        let text = String(repeating: #"{"properties":{"a":"#, count: 63) + "{}" + String(repeating: "}}", count: 63)
        try onStack(of: kilobytes) {
            do {
                try JSONSchema(document: JSON(parsing: text)).check(1)
            } catch let error as JSONSchemaError {
                #expect(kilobytes < 8192 && error.message.contains("stack"))
            }
        }
    }

    @Test(arguments: [arrays, objects])
    func comparingAndHashingTakeNoStackForDepth(_ text: String) throws {
        try onStack(of: 64) {
            let json = try JSON(parsing: text)
            #expect(json == (try JSON(parsing: text)))
            #expect(json.hashValue == json.detached().hashValue)
            #expect(try FerryJSONDecoder().decode(JSON.self, from: json) == json)
        }
    }

    /// Types that contain others of their kind are made by recursion, as long as there is stack.
    @Test(arguments: [64, 128, 512, 8192]) func recursionEndsWithAnErrorNotACrash(_ kilobytes: Int) throws {
        try onStack(of: kilobytes) {
            let json = try JSON(parsing: Self.trees)
            for make in [{ try Tree(json: json) }, { try FerryJSONDecoder().decode(Tree.self, from: json) }] {
                do {
                    _ = try make()
                } catch let error as JSONMismatch {
                    #expect(error.path.hasPrefix("$.a[0].a[0]") && error.expected.contains("stack"))
                } catch DecodingError.dataCorrupted(let context) {
                    #expect(context.debugDescription.contains("stack") && context.codingPath.count > 3)
                }
            }
            #expect(try Tree(json: JSON(parsing: #"{"a":[{"a":[{}]}]}"#)).a?.first?.a?.count == 1)
            #expect(try FerryJSONDecoder().decode(Tree.self, from: Data("{}".utf8)).a == nil)
        }
    }

    @Test func anOrdinaryStackIsEnoughForTheDeepest() throws {
        try onStack(of: 8192) {
            let json = try JSON(parsing: Self.trees)
            func depth(_ tree: Tree) -> Int { 1 + (tree.a?.first.map(depth) ?? 0) }
            #expect(depth(try Tree(json: json)) == Self.deepest / 2 + 1)
            #expect(depth(try FerryJSONDecoder().decode(Tree.self, from: json)) == Self.deepest / 2 + 1)
        }
    }
}
