import FerryTesting
import Foundation
import Testing

extension LoopbackTests {
    @Suite("LoopbackScript: JSON")
    struct LoopbackScriptJSONTests {
        @Test func fileIsReadAsDocumented() throws {
            let text = #"""
                {"scripts": [
                    {"path": "/slow", "uses": 1, "steps": [
                        "expectHead", "expectBody", {"send": "a\r\n"}, {"sendBase64": "AAE="}, {"send": "x", "times": 200000},
                        {"expectBytes": 3}, {"pattern": 9}, {"keyUpdates": 4}, {"drip": "ab", "interval": 50}, {"pause": 10}, {"wait": "go"},
                        {"mark": "half"}, "reset"]},
                    {"connection": 2, "steps": ["close"]},
                    {"connections": [3, 5], "steps": ["stallHandshake"]},
                    {"steps": ["serve"]}
                ]}
                """#
            let rules = try LoopbackScript.rules(json: Data(text.utf8))
            #expect(
                rules == [
                    .init(
                        .path("/slow"), uses: 1,
                        [
                            .expectHead, .expectBody, .send("a\r\n"), .sendBytes([0, 1]),
                            .repeating("x", times: 200_000),
                            .expectBytes(3), .pattern(bytes: 9), .keyUpdates(4),
                            .drip("ab", interval: .milliseconds(50)),
                            .pause(.milliseconds(10)), .wait("go"), .mark("half"), .reset,
                        ]),
                    .init(.connections(2...2), [.close]),
                    .init(.connections(3...5), [.stallHandshake]),
                    .init(.everyConnection, [.serve]),
                ])
        }

        @Test func everyStepSurvivesTheRoundTrip() throws {
            let script: LoopbackScript = [
                .expectHead, .expectBody, .expectBytes(1), .expectClose, .send("ü"), .sendBytes([255]),
                .repeating("a", times: 2), .repeatingBytes([0], times: 3), .pattern(bytes: 4), .keyUpdates(2),
                .drip("b", interval: .milliseconds(5), chunk: 6), .pause(.milliseconds(7)), .wait("w"), .mark("m"),
                .close,
                .drop, .reset, .halfClose, .stopReading, .keepOpen, .serve, .restart, .startTLS, .plain,
                .stallHandshake,
                .closeHandshake,
            ]
            let rule = LoopbackScript.Rule(.connections(1...2), uses: 3, script)
            #expect(try JSONDecoder().decode(LoopbackScript.Rule.self, from: JSONEncoder().encode(rule)) == rule)
        }

        @Test(arguments: [
            #"{}"#, #"{"scripts": [{"steps": ["jump"]}]}"#, #"{"scripts": [{"steps": [{"throw": 1}]}]}"#,
            #"{"scripts": [{"connections": [5, 3], "steps": []}]}"#, #"{"scripts": [{"path": "/"}]}"#, "not json",
            #"{"scripts": [{"steps": [{"sendBase64": "%"}]}]}"#,
            #"{"scripts": [{"steps": [{"pause": -1}]}]}"#, #"{"scripts": [{"steps": [{"pause": 99999999999999}]}]}"#,
            #"{"scripts": [{"steps": [{"pattern": -5}]}]}"#, #"{"scripts": [{"steps": [{"expectBytes": -1}]}]}"#,
            #"{"scripts": [{"steps": [{"send": "a", "times": -1}]}]}"#,
            #"{"scripts": [{"steps": [{"drip": "a", "interval": 1, "chunk": 0}]}]}"#,
            #"{"scripts": [{"steps": [{"drip": "a"}]}]}"#, #"{"scripts": [{"steps": [{"send": "a", "pause": 5}]}]}"#,
            #"{"scripts": [{"steps": [{"pause": 5, "wait": "x"}]}]}"#, #"{"scripts": [{"use": 1, "steps": []}]}"#,
            #"{"scripts": [{"uses": 0, "steps": []}]}"#, #"{"scripts": [{"connection": 0, "steps": []}]}"#,
            #"{"scripts": [{"connections": [0, 3], "steps": []}]}"#,
        ])
        func anythingElseIsRefused(text: String) {
            #expect(throws: LoopbackError.self) { try LoopbackScript.rules(json: Data(text.utf8)) }
        }

        @Test func missingFileIsNamed() {
            #expect(throws: LoopbackError.file("/nonexistent/script.json")) {
                try LoopbackScript.rules(contentsOf: "/nonexistent/script.json")
            }
        }

        @Test func emptyScriptKeepsTheConnectionOpen() async throws {
            let server = try LoopbackServer()
            server.script([])
            let client = try RawClient(port: server.port)
            try await server.waitForConnections(1)
            try await client.send("GET / HTTP/1.1\r\n\r\n")
            try await server.waitForReceivedBytes(18)
            #expect(server.requestCount == 0)
            #expect(server.openConnectionCount == 1)
        }
    }
}
