import Testing

@testable import Ferry

@Suite struct SHA256Tests {
    @Test func knownDigests() {
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        #expect(
            SHA256.hexadecimal(of: empty) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        let text = SHA256.hexadecimal(of: Array("abc".utf8))
        #expect(text == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(SHA256.isHexadecimal(text) && SHA256.isHexadecimal(text.uppercased()))
    }

    @Test func onlyTheDigitsOfASCIIAreADigest() {
        #expect(!SHA256.isHexadecimal("") && !SHA256.isHexadecimal(String(repeating: "a", count: 63)))
        #expect(!SHA256.isHexadecimal(String(repeating: "g", count: 64)))
        #expect(!SHA256.isHexadecimal(String(repeating: "０", count: 21) + "0"))
    }
}
