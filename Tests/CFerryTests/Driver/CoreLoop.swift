import CCoreParts
import CFerry
import FerrySynchronization
import FerryTesting
import Foundation
import Testing

/// Every suite runs on both engines: `make test` runs them again with `FERRY_ENGINE=libcurl`.
let testedEngine =
    ProcessInfo.processInfo.environment["FERRY_ENGINE"] == "libcurl" ? FERRY_ENGINE_LIBCURL : FERRY_ENGINE_HTTP1

/// The number of libcurl's easy handles; the native engine has none, and with a libcurl before 8.1.1 none is reused.
func easyHandles(_ count: UInt64) -> UInt64 {
    let version = String(cString: parts_libcurl()).split(separator: ".").compactMap { Int($0) }
    let isUsedAgain = !version.lexicographicallyPrecedes([8, 1, 1])
    return testedEngine == FERRY_ENGINE_LIBCURL && isUsedAgain ? count : 0
}

/// A loop of the core, used through its header alone.
final class CoreLoop: Sendable {
    struct Options: Sendable {
        var maxTransfers = 0
        var maxPerHost = 0
        var idle = 0
        var caFile: String?
        var pins: String?
        var isInsecure = false
        var userAgent: String?
        var encodings: String?
        var usesLookupStub = false
        var clientCertificate: String?
        var clientKey: String?
        var clientKeyPassword: String?
        var minimumTLS = FERRY_TLS_1_2
        var http2 = FERRY_HTTP2_NEVER
        var engine = testedEngine
    }

    let record: CoreRecord
    let pointer: CorePointer
    private let ids = Atomic<UInt64>(0)
    private let isFreed = Atomic(false)

    init(_ options: Options = Options(), keepsResults: Bool = false) throws {
        record = CoreRecord(keepsResults: keepsResults)
        let context = coreContext(record)
        var c = ferry_options()
        c.context = context
        c.on_finished = coreOnFinished
        c.on_started = coreOnStarted
        c.on_head = coreOnHead
        c.on_informational = coreOnInformational
        c.on_answered = coreOnAnswered
        c.on_trailers = coreOnTrailers
        c.on_body = coreOnBody
        c.on_written = coreOnWritten
        c.on_pull = coreOnPull
        c.on_call = coreOnCall
        c.on_stopped = coreOnStopped
        c.max_transfers = UInt32(options.maxTransfers)
        c.max_per_host = UInt32(options.maxPerHost)
        c.idle_ms = UInt32(options.idle)
        c.insecure = options.isInsecure ? 1 : 0
        c.minimum_tls = UInt8(options.minimumTLS)
        c.http2 = UInt8(options.http2)
        c.engine = UInt8(options.engine)
        if options.usesLookupStub { c.lookup = lookupStub }
        var made: OpaquePointer?
        let code = options.caFile.withCopy { caFile in
            options.pins.withCopy { pins in
                options.userAgent.withCopy { userAgent in
                    options.encodings.withCopy { encodings in
                        c.ca_file = caFile
                        c.pinned_keys = pins
                        c.user_agent = userAgent
                        c.encodings = encodings
                        return options.clientCertificate.withCopy { certificate in
                            options.clientKey.withCopy { key in
                                options.clientKeyPassword.withCopy { password in
                                    c.client_certificate = certificate
                                    c.client_key = key
                                    c.client_key_password = password
                                    return ferry_loop_start(&c, &made)
                                }
                            }
                        }
                    }
                }
            }
        }
        guard let made, code == FERRY_OK else {
            releaseCoreContext(context)
            throw CoreFault(Int(code))
        }
        pointer = CorePointer(raw: made)
    }

    /// Submits; throws the error of a refusal.
    @discardableResult
    func submit(_ request: CoreRequest) throws(CoreFault) -> UInt64 {
        let id = ids.add(1, ordering: .relaxed).newValue
        record.read { $0.requests[id] = request }
        var detail: Int32 = -1
        let code = request.withCore(id: id) { ferry_submit(pointer.raw, $0, &detail) }
        guard code == FERRY_OK else {
            record.read { $0.requests[id] = nil }
            throw CoreFault(Int(code), Int(detail))
        }
        return id
    }

    /// Submits and waits for the result.
    func run(_ request: CoreRequest) async throws -> CoreResult {
        await result(of: try submit(request))
    }

    func get(_ url: String) async throws -> CoreResult {
        try await run(CoreRequest("GET", url))
    }

    func result(of id: UInt64) async -> CoreResult {
        await record.until { $0.results[id] != nil }
        return record.read { $0.results[id]?.first } ?? CoreResult(copying: ferry_result())
    }

    func results(of ids: [UInt64]) async -> [CoreResult] {
        var all: [CoreResult] = []
        for id in ids { all.append(await result(of: id)) }
        return all
    }

    func streamed(_ id: UInt64) -> [UInt8] { record.read { $0.streamed[id] ?? [] } }
    func events(_ id: UInt64) -> [CoreRecord.Event] { record.read { $0.events[id] ?? [] } }
    /// Waits for the first piece of a streamed body.
    func untilBody(_ id: UInt64) async { await record.until { !($0.streamed[id] ?? []).isEmpty } }

    func cancel(_ id: UInt64) { ferry_cancel(pointer.raw, id) }
    func resume(_ id: UInt64) { ferry_resume(pointer.raw, id) }
    func resumeSending(_ id: UInt64) { ferry_resume_sending(pointer.raw, id) }
    func pause(_ id: UInt64) { ferry_pause(pointer.raw, id) }
    func write(_ id: UInt64, to descriptor: Int32, at offset: Int64, most: UInt64 = 0) {
        ferry_write_to(pointer.raw, id, descriptor, offset, most)
    }
    func written(_ id: UInt64) -> [UInt64] { record.read { $0.written[id] ?? [] } }
    func untilHead(_ id: UInt64) async { await record.until { $0.heads[id] != nil } }
    func setPriority(_ id: UInt64, _ priority: Int) { ferry_set_priority(pointer.raw, id, Int32(priority)) }
    func call() { ferry_call(pointer.raw) }
    func stop() { ferry_loop_stop(pointer.raw) }

    var statistics: ferry_statistics {
        var statistics = ferry_statistics()
        ferry_loop_statistics(pointer.raw, &statistics)
        return statistics
    }

    /// Waits until the loop has had a whole turn from here on, or has ended.
    func turn() async {
        let calls = record.read { $0.calls }
        call()
        await record.until { $0.calls > calls || $0.isStopped }
    }

    /// Waits until the loop sleeps and its gauges meet the condition; a turn's gauges are written at its end.
    func untilStatistics(_ isReached: (ferry_statistics) -> Bool) async {
        while !isReached(statistics) {
            await turn()
            await Task.yield()
        }
    }

    /// Waits until this many milliseconds have passed on the loop's own clock, with a run without a response that times
    /// out after them: all work that the loop had to do meanwhile is done.
    func pass(milliseconds: Int, _ server: LoopbackServer) async throws {
        server.script(path: "/silence", uses: 1, [.expectHead, .keepOpen])
        let silence = CoreRequest("GET", server.baseURL + "/silence").with { $0.total = milliseconds }
        let result = try await run(silence)
        #expect(result.fault == CoreFault(FERRY_E_TIMEOUT, FERRY_D_TIMEOUT_TOTAL))
    }

    /// Ends the loop, once.
    func free() {
        if !isFreed.exchange(true, ordering: .relaxed) { ferry_loop_free(pointer.raw) }
    }

    /// Notes that somebody else frees the loop, which then may be gone.
    func isFreedElsewhere() { isFreed.store(true, ordering: .relaxed) }
    var wasFreed: Bool { isFreed.load(ordering: .relaxed) }
}

extension String? {
    /// The C string, nil for nil, valid until `use` returns.
    func withCopy<R>(_ use: (UnsafePointer<CChar>?) -> R) -> R {
        if let self { self.withCString(use) } else { use(nil) }
    }
}
