import FerryJSON
import Testing

@Suite struct PointerTests {
    /// The document of RFC 6901, section 5.
    let document: JSON

    init() throws {
        document = try JSON(
            parsing: #"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#)
    }

    @Test(
        "The examples of the RFC",
        arguments: [
            ("/foo", #"["bar","baz"]"#), ("/foo/0", #""bar""#), ("/", "0"), ("/a~1b", "1"), ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"), ("/i\\j", "5"), ("/k\"l", "6"), ("/ ", "7"), ("/m~0n", "8"),
        ])
    func named(_ pointer: String, _ value: String) {
        #expect(document.value(atPointer: pointer)?.description == value)
    }

    @Test func theEmptyPointerIsTheWholeDocument() {
        #expect(document.value(atPointer: "") == document)
    }

    @Test(
        "A pointer to nothing is nil",
        arguments: [
            "foo", "/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/", "/foo/bar", "/x", "/m~n", "/m~2n", "/foo/0/x",
            "//",
        ])
    func nothing(_ pointer: String) {
        #expect(document.value(atPointer: pointer) == nil)
    }
}
