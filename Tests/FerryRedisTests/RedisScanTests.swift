import Testing

@testable import FerryRedis

/// Which keys are entries, of all that begin with a prefix.
@Suite struct RedisScanTests {
    private static let digest = String(repeating: "0123456789abcdef", count: 4)

    @Test(arguments: [
        ("app1:\(digest)", true), ("app2:\(digest)", true), ("app12:\(digest)", false), ("app3:\(digest)", false),
        ("app:\(digest)", false), ("app2:\(digest)0", false), ("app2:\(digest.uppercased())", false),
        ("app2:cart", false), ("app2:\(digest):cart", false), ("apple2:\(digest)", false),
    ])
    func onlyEntriesOfTheirFormatsAreFound(name: String, isEntry: Bool) {
        #expect(RedisScan.isEntry(Array(name.utf8), under: Array("app".utf8)) == isEntry)
    }
}
