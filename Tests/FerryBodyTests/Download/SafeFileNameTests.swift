import Testing

@testable import Ferry

@Suite struct SafeFileNameTests {
    private func name(_ disposition: String?, _ url: String = "http://h/path/last.bin?x=1#f") -> String {
        SafeFileName.name(contentDisposition: disposition, url: url)
    }

    @Test(arguments: [
        ("attachment; filename=a.txt", "a.txt"), ("attachment; filename=\"a b.txt\"", "a b.txt"),
        ("ATTACHMENT;FileName = \"a.txt\" ; size=3", "a.txt"), ("inline;filename=\"a\\\"b.txt\"", "a\"b.txt"),
        ("attachment; filename=\"old.txt\"; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
        ("attachment; filename*=iso-8859-1'en'%A3.txt; filename=x", "£.txt"),
        ("attachment; filename*=UTF-8''%FF; filename=plain.txt", "plain.txt"),
        ("attachment; filename*=UTF-8''%4; filename=plain.txt", "plain.txt"),
        ("attachment; filename=\"a;b.txt\"; x=y", "a;b.txt"),
        ("attachment; foo=\"filename=evil\"; filename=good", "good"),
    ])
    func theServersName(field: String, expected: String) { #expect(name(field) == expected) }

    @Test(
        arguments: [
            ("../../x", "x"), ("/etc/x", "x"), (".bashrc", "bashrc"), ("..\\..\\x.exe", "x.exe"),
            ("C:\\dir\\f.txt", "f.txt"),
            ("a/b/", nil), ("..", nil), (".", nil), ("", nil), ("   ", nil), ("a\u{0}b", "ab"),
            ("a\nb\r.txt", "ab.txt"),
            ("x.txt.", "x.txt"), (" x ", "x"), ("gpj\u{202E}.exe", "gpj.exe"), ("f.ferry-part", "f.ferry-part_"),
            ("f.ferry-meta", "f.ferry-meta_"), ("\u{FEFF}.profile", "profile"), ("...a", "a"), ("~", "~"),
        ] as [(String, String?)])
    func nothingButAVisibleName(given: String, expected: String?) { #expect(SafeFileName.safe(given) == expected) }

    @Test func tooLongKeepsItsExtension() {
        let long = SafeFileName.safe(String(repeating: "a", count: 300) + ".tar.gz")
        #expect(long?.utf8.count == 255 && long?.hasSuffix(".gz") == true)
        let wide = SafeFileName.safe(String(repeating: "é", count: 300))
        #expect(wide?.utf8.count == 254 && wide?.allSatisfy { $0 == "é" } == true)
        let heap = SafeFileName.safe("a" + String(repeating: "\u{301}", count: 300) + ".txt")
        #expect(heap == "download.txt")
        // A truncated name must be safe itself: otherwise it would not be found again.
        for ending in [" ", ".", "  .. ", "\u{3000}"] {
            let stem = String(repeating: "n", count: 255 - ending.utf8.count)
            let cut = SafeFileName.safe(stem + ending + "more and more of it")
            #expect(cut.flatMap(SafeFileName.safe) == cut && cut?.last == "n", "\(cut ?? "none")")
        }
        let suffixed = SafeFileName.safe(String(repeating: "n", count: 242) + "  .ferry-part")
        #expect(suffixed.flatMap(SafeFileName.safe) == suffixed)
    }

    @Test func aLongNameIsCutBetweenCharacters() {
        let flag = "\u{1F1E9}\u{1F1EA}"
        let flags = SafeFileName.safe(String(repeating: flag, count: 100) + ".txt")
        #expect(flags == String(repeating: flag, count: 31) + ".txt")
        #expect(SafeFileName.numbered("a.b\u{E9}", 2) == "a-2.b\u{E9}" && SafeFileName.numbered(".a", 2) == ".a-2")
    }

    @Test func withoutANameTheURLsLastComponent() {
        #expect(name(nil) == "last.bin")
        #expect(name("attachment") == "last.bin" && name("attachment; filename=..") == "last.bin")
        #expect(name(nil, "http://h/a%20b%2F..%2Fc") == "c" && name(nil, "http://h/%E2%82%AC") == "€")
        for url in ["http://h", "http://h/", "http://h/a/", "http://h/..", "http://h/?a/b"] {
            #expect(name(nil, url) == "download", "\(url)")
        }
        #expect(name(nil, "http://h/%zz") == "%zz")
    }

    @Test func thePartOfALongNameIsNotTooLong() {
        let name = String(repeating: "a", count: 255)
        let (part, metadata) = SafeFileName.part(of: name)
        #expect(part.utf8.count <= 255 && metadata.utf8.count < 255 && part != metadata)
        #expect(SafeFileName.part(of: "b" + name.dropFirst()).part != part)
        #expect(
            SafeFileName.part(of: "f").part == "f.ferry-part" && SafeFileName.part(of: "f").metadata == "f.ferry-meta")
    }
}
