import Testing

@testable import Ferry

@Suite struct ArgumentsTests {
    private func form(_ arguments: Arguments) -> String { String(decoding: arguments.formEncoded(), as: UTF8.self) }
    private func json(_ arguments: Arguments) -> String? {
        arguments.jsonEncoded().map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func namesAreSortedAndNested() {
        #expect(form(["b": ["x", "y"], "a": 1, "c": ["k": nil]]) == "a=1&b%5B%5D=x&b%5B%5D=y&c%5Bk%5D")
        #expect(
            form(["o": ["z": ["q": 1], "a": [["n": 1], 2]]])
                == "o%5Ba%5D%5B%5D%5Bn%5D=1&o%5Ba%5D%5B%5D=2&o%5Bz%5D%5Bq%5D=1")
    }

    private static let forms: [(Arguments, String)] = [
        (["a": nil], "a"),
        (["a": []], ""),
        (["a": [:]], ""),
        ([:], ""),
        (["a": true, "b": false], "a=true&b=false"),
        (["a": 1.5, "b": 2.0, "c": -3], "a=1.5&b=2&c=-3"),
        (["a b&=": "1+1=2 & ü"], "a%20b%26%3D=1%2B1%3D2%20%26%20%C3%BC"),
        (["q": "-._~?/", "r": "!$'()*,;:@#[]%"], "q=-._~?/&r=%21%24%27%28%29%2A%2C%3B%3A%40%23%5B%5D%25"),
        (["a": ""], "a="),
        (["a": [nil, 1]], "a%5B%5D&a%5B%5D=1"),
    ]

    @Test(arguments: forms)
    func formIsEncoded(_ arguments: Arguments, _ text: String) { #expect(form(arguments) == text) }

    @Test func jsonIsEncoded() {
        #expect(
            json(["b": ["x", nil, true], "a": 1.5, "c": ["k": -2], "d": "\"\\\n\u{1}ü"])
                == #"{"a":1.5,"b":["x",null,true],"c":{"k":-2},"d":"\"\\\n\u0001ü"}"#)
        #expect(json([:]) == "{}")
    }

    @Test func numbersThatAreNotFiniteAreNotJSON() {
        #expect(json(["a": [["b": .number(.nan)]]]) == nil)
        #expect(json(["a": .number(.infinity)]) == nil)
    }

    @Test func variablesAndInterpolationsAreValues() {
        let id = 7
        #expect(form(["id": .integer(id), "name": "n\(id)"]) == "id=7&name=n7")
    }
}
