import FerryJSON
import Testing

@Suite struct ConvertibleTests {
    struct Question: JSONConvertible, Equatable {
        let id: Int
        let answers: [String]
        init(json: JSON) throws {
            id = try json.value("id")
            answers = try json.value("answers")
        }
    }

    enum Color: String, JSONConvertible { case red, green }

    struct User: JSONConvertible {
        let nick: String
        let bio: String?
        let color: Color
        let questions: [Question]
        let scores: [String: Double]
        init(json: JSON) throws {
            nick = try json.value("nick")
            bio = try json.value("bio")
            color = try json.value("color")
            questions = try json.value("questions")
            scores = try json.value("scores")
        }
    }

    private func user(_ change: (String, String) = ("", "")) throws -> User {
        let text =
            #"{"nick":"kim","bio":"x","color":"red","questions":[{"id":1,"answers":["a"]},{"id":2,"answers":[]}],"scores":{"a":1,"b":0.5}}"#
        return try JSON(parsing: change.0.isEmpty ? text : text.replacing(change.0, with: change.1)).value()
    }

    @Test func nestedValuesAreMade() throws {
        let user = try user()
        #expect(user.nick == "kim")
        #expect(user.bio == "x")
        #expect(user.color == .red)
        #expect(user.questions.map(\.id) == [1, 2])
        #expect(user.questions[0].answers == ["a"])
        #expect(user.scores == ["a": 1, "b": 0.5])
    }

    @Test func anOptionalIsNilWhenNullOrAbsent() throws {
        #expect(try user((#""bio":"x""#, #""bio":null"#)).bio == nil)
        #expect(try user((#""bio":"x","#, "")).bio == nil)
    }

    @Test(
        "The error names the place",
        arguments: [
            (#""id":2"#, #""id":"x""#, "$.questions[1].id: expected integer, found string"),
            (#""id":2,"#, "", "$.questions[1].id: expected Int, found nothing"),
            (#""nick":"kim","#, "", "$.nick: expected String, found nothing"),
            (#""b":0.5"#, #""b":true"#, "$.scores.b: expected number, found bool"),
            (#""red""#, #""blue""#, "$.color: expected a value of Color, found string"),
            (#""bio":"x""#, #""bio":1"#, "$.bio: expected string, found number"),
        ])
    func errors(_ old: String, _ new: String, _ message: String) {
        let error = #expect(throws: JSONMismatch.self) { try user((old, new)) }
        #expect(error?.description == message)
    }

    @Test func integersThatDoNotFitAreErrors() throws {
        let numbers = try JSON(parsing: "[300,-1,1.5,1e2]")
        #expect(throws: JSONMismatch.self) { try numbers.value(at: 0, as: UInt8.self) }
        #expect(throws: JSONMismatch.self) { try numbers.value(at: 1, as: UInt.self) }
        #expect(throws: JSONMismatch.self) { try numbers.value(at: 2, as: Int.self) }
        #expect(try numbers.value(at: 3, as: Int8.self) == 100)
        #expect(try numbers.value(at: 2, as: Float.self) == 1.5)
        #expect(try numbers.value(at: 9, as: Int?.self) == nil)
        #expect(throws: JSONMismatch.self) { try JSON(1e300).value(as: Float.self) }
    }

    @Test func aJSONIsAValueToo() throws {
        let json = try JSON(parsing: #"{"a":[1]}"#)
        #expect(try json.value("a", as: JSON.self) == [1])
        #expect(try json.value("a", as: [JSON].self) == [1])
    }
}
