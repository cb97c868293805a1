import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// The encodings that a request accepts.
    @Suite struct EncodingChoice {
        @Test(arguments: [nil, "gzip, deflate"])
        func theRequestChooses(standard: String?) async throws {
            var options = CoreLoop.Options()
            options.encodings = standard
            try await withCore(options) { core, server in
                let get = CoreRequest("GET", server.baseURL + "/hello")
                func sent(_ request: CoreRequest) async throws -> [String] {
                    let result = try await core.run(request)
                    #expect(result.fault == .ok)
                    return server.requests.last?.headers.values(of: "Accept-Encoding") ?? []
                }
                func expect(_ seen: [String], _ wanted: [String]) { #expect(seen == wanted) }
                let usual = standard.map { [$0] } ?? []
                let none = CoreExtras(encodingsKind: FERRY_ENCODINGS_NONE)
                for _ in 0..<2 {
                    expect(try await sent(get), usual)
                    expect(try await sent(get.with { $0.extras = CoreExtras() }), usual)
                    expect(try await sent(get.with { $0.extras = none }), [])
                    for text in ["br", "identity", "gzip;q=0.5, *;q=0"] {
                        let these = CoreExtras(encodings: text, encodingsKind: FERRY_ENCODINGS_THESE)
                        expect(try await sent(get.with { $0.extras = these }), [text])
                        // A field of the request itself takes precedence, and is the only one.
                        for extras in [nil, none, these] {
                            let own = get.with {
                                $0.extras = extras
                                $0.add("accept-encoding", "x-own")
                            }
                            expect(try await sent(own), ["x-own"])
                        }
                    }
                    let empty = CoreExtras(encodings: "", encodingsKind: FERRY_ENCODINGS_THESE)
                    expect(try await sent(get.with { $0.extras = empty }), [])
                }
            }
        }

        @Test func decodingDoesNotDependOnIt() async throws {
            try await withCore { core, server in
                let result = try await core.run(
                    CoreRequest("GET", server.baseURL + "/gzip/500").with {
                        $0.flags = .decode
                        $0.extras = CoreExtras(encodings: "gzip", encodingsKind: FERRY_ENCODINGS_THESE)
                    })
                #expect(result.isDecoded && result.body?.count == 500)
            }
        }

        @Test(arguments: ["a\r\nX: y", "a\nb", "\u{1}"])
        func aValueThatWouldBreakTheHeadIsRefused(text: String) async throws {
            try await withCore { core, server in
                let request = CoreRequest("GET", server.baseURL).with {
                    $0.extras = CoreExtras(encodings: text, encodingsKind: FERRY_ENCODINGS_THESE)
                }
                #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_VALUE)) { try core.submit(request) }
            }
        }
    }
}
