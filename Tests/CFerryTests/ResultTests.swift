import CCoreParts
import CFerry
import FerryTesting
import Glibc
import Testing

extension CoreTests {
    /// Results without a network, and the lifetime of results.
    @Suite struct Results {
        /// `.ci/libcurl` names the version that replaces the system's.
        @Test func theLibcurlThatIsLoadedIsTheOneThatIsToBeTested() {
            let asked = getenv("FERRY_LIBCURL").map { String(cString: $0) }
            #expect(asked == nil || asked == String(cString: parts_libcurl()))
        }

        private func make(_ head: String, _ body: [UInt8] = []) throws(CoreFault) -> CoreResult {
            var made: UnsafeMutablePointer<ferry_result>?
            let bytes = Array(head.utf8)
            let code = bytes.withUnsafeBytes { head in
                body.withUnsafeBytes { body in
                    ferry_result_make(
                        7, head.bindMemory(to: CChar.self).baseAddress!, head.count, body.baseAddress, body.count, &made
                    )
                }
            }
            guard let made, code == FERRY_OK else { throw CoreFault(Int(code)) }
            defer { ferry_result_free(made) }
            return CoreResult(copying: made.pointee)
        }

        @Test(arguments: [0, 1, 1_000, 1_000_000])
        func aMadeResultIsLikeOneFromTheWire(size: Int) throws {
            let body = LoopbackServer.pattern(0..<size)
            let result = try make("HTTP/1.1 201 Created\r\nX-A: 1\r\nX-A:  2 \r\n\r\n", body)
            #expect(result.id == 7 && result.fault == .ok && result.status == 201 && result.version == 11)
            #expect(result.values("x-a") == ["1", "2"])
            #expect(result.body ?? [] == body && result.bodyLength == UInt64(size))
            if size > 0 { #expect(result.spare == Array(repeating: 0, count: 64)) }
            #expect(result.phase == FERRY_PHASE_DONE && result.attempts == 1)
        }

        @Test func informationalHeadsAndNoFields() throws {
            let result = try make("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
            #expect(result.status == 204 && result.fields.isEmpty)
        }

        @Test(arguments: [
            "", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "nonsense\r\n\r\n",
        ])
        func brokenHeadsMakeNoResult(head: String) {
            #expect(throws: CoreFault(FERRY_E_MALFORMED_RESPONSE)) { try make(head) }
        }

        /// Its head is its own, and its body that of the other.
        @Test func aRevisedResultHasOtherBytesInItsHead() throws {
            var (made, revised): (UnsafeMutablePointer<ferry_result>?, UnsafeMutablePointer<ferry_result>?)
            let head = "HTTP/1.1 200 OK\r\nX-A: 1\r\nX-B: 22\r\n\r\n"
            #expect(ferry_result_make(7, head, head.utf8.count, "body", 4, &made) == FERRY_OK)
            let first = try #require(made)
            defer { ferry_result_free(first) }
            let value = first.pointee.fields![1].value
            let code = "33".withCString { text in
                var change = ferry_change(at: value, length: 2, bytes: text)
                return ferry_result_revise(first, &change, 1, &revised)
            }
            let second = try #require(code == FERRY_OK ? revised : nil)
            defer { ferry_result_free(second) }
            #expect(second.pointee.body == first.pointee.body && second.pointee.body_length == 4)
            let (old, new) = (CoreResult(copying: first.pointee), CoreResult(copying: second.pointee))
            #expect(old.values("x-b") == ["22"] && new.values("x-b") == ["33"] && new.values("x-a") == ["1"])
            #expect(new.status == 200 && new.body == old.body)
            for (at, length) in [(first.pointee.head_length, 1), (.max, 1), (0, UInt32.max), (value, 1000)] {
                let code = head.withCString { text in
                    var change = ferry_change(at: at, length: length, bytes: text)
                    return ferry_result_revise(first, &change, 1, &revised)
                }
                #expect(code == FERRY_E_INTERNAL && revised == nil)
            }
        }

        @Test func aMadeFault() {
            var made: UnsafeMutablePointer<ferry_result>?
            let code = ferry_result_make_fault(
                9, Int32(FERRY_E_DNS), Int32(FERRY_D_DNS_NOT_FOUND), Int32(FERRY_PHASE_DNS),
                UInt32(FERRY_RESULT_PROCESSED), &made)
            #expect(code == FERRY_OK)
            guard let made else { return }
            let result = CoreResult(copying: made.pointee)
            ferry_result_free(made)
            #expect(result.id == 9 && result.fault == CoreFault(FERRY_E_DNS, FERRY_D_DNS_NOT_FOUND))
            #expect(result.isProcessed)
            #expect(result.phase == FERRY_PHASE_DNS && result.contentLength == -1 && result.body == nil)
        }

        @Test func aResultOutlivesItsLoop() async throws {
            try await withLoopbackServer { server in
                let core = try CoreLoop(keepsResults: true)
                for path in ["/hello", "/bytes/200000", "/status/404", "/gzip/100?cut=1"] {
                    _ = try core.submit(CoreRequest("GET", server.baseURL + path).with { $0.flags = .decode })
                }
                await core.record.until { $0.kept.count == 4 }
                core.free()
                let kept = core.record.read { state in
                    defer { state.kept = [] }
                    return state.kept
                }
                // Freed on other threads than the loop's, which is gone.
                await withTaskGroup(of: Void.self) { group in
                    for result in kept {
                        group.addTask {
                            let copy = result.copy()
                            #expect(copy.head.isEmpty == false && copy.status > 0)
                            result.free()
                        }
                    }
                }
            }
        }

        @Test func statisticsCountWhatWasDone() async throws {
            try await withCore { core, server in
                for _ in 0..<10 { _ = try await core.get(server.baseURL + "/hello") }
                let s = core.statistics
                #expect(s.submitted == 10 && s.finished == 10 && s.waiting == 0)
                #expect(s.connections == 1 && s.sockets == 1 && s.handles == easyHandles(1) && s.guarded == 0)
                #expect(s.turns > 0 && s.lookups == 0)
                await core.untilStatistics { $0.running == 0 }
            }
        }
    }
}
