import Dispatch
import FerryCache
import FerryTransport

extension CacheStage {
    /// Whether a run can use a stored response.
    func verdict<R: Request>(
        on stored: StoredResponse, _ plan: CachePlan, of request: R, now: CacheTime
    ) -> ResponseCache.Verdict {
        // With a logged-in user, nobody knows whether the response is meant for that user.
        if !plan.hasSensitiveData && core.hasCookies { return .miss(.unknownCredentials) }
        let marks = stored.marks
        if let difference = plan.terms.difference(from: marks) { return .miss(CacheMiss(difference)) }
        guard let age = marks.age(at: now) else { return .miss(.expired) }
        let varying = stored.attributes.varying
        if !varying.isEmpty {
            // Only the transport knows which cookies of the jar it sends.
            let isSame = variance(of: varying) == stored.attributes.variance
            if !isSame || core.addsCookies(to: varying) { return .miss(.varyMismatch) }
        }
        if age <= plan.terms.time {
            let outcome = CacheTrace.Outcome.hit(age: .microseconds(age), isStale: false)
            return .fresh(stored, CacheTrace(outcome: outcome, remaining: plan.terms.time - age))
        }
        let outcome = CacheTrace.Outcome.hit(age: .microseconds(age), isStale: true)
        let trace = CacheTrace(outcome: outcome, remaining: plan.terms.time - age)
        return .stale(stored, past: age - plan.terms.time, trace)
    }

    /// The value of a header field as the transfer sends it, whatever the application has changed since.
    private func sentValue(of name: String) -> String? {
        reading.flatMap { core.builder.sentValue(of: name, after: $0) }
    }

    /// A digest of the values of these fields.
    private func variance(of names: [String]) -> CacheDigest {
        var bytes: [UInt8] = []
        for name in names {
            bytes.appendCounted(name)
            let value = sentValue(of: name)
            bytes.append(value == nil ? 0 : 1)
            bytes.appendCounted(value ?? "")
        }
        return CacheDigest(of: bytes)
    }

    /// A response of the network in the form in which it is stored; `nil` if it must not be stored.
    func kept<R: Request>(_ response: Response, of request: R, _ plan: CachePlan) -> KeptResponse? {
        guard let cache = core.cache, !response.isFromCache else { return nil }
        let rules = CacheRules(response.result)
        if let refusal = refusal(of: response, rules, request, plan) {
            cache.counters.refused(refusal)
            // The stored response is older than this one, and no longer counts as fresh.
            if let miss = response.cacheMiss, miss == .reload || miss == .expired { cache.remove(plan.key) }
            return nil
        }
        return kept(response, rules, of: request, plan, at: cache.clock())
    }

    /// The response in the form in which it is stored, without checking whether that is allowed.
    func kept<R: Request>(
        _ response: Response, _ rules: CacheRules, of request: R, _ plan: CachePlan, at now: CacheTime
    ) -> KeptResponse? {
        var marks = CacheEntry.Marks(stored: now)
        marks.version = plan.terms.version
        marks.sensitiveData = plan.terms.sensitiveData
        marks.applicationVersion = plan.terms.applicationVersion
        var attributes = CacheAttributes()
        if response.url != plan.url { attributes.url = Redaction.url(response.url) }
        if !rules.varying.isEmpty {
            attributes.varying = rules.varying
            attributes.variance = variance(of: rules.varying)
        }
        let result = response.result
        let head = CacheRules.keptHead(result)
        // Hits share the response from the network, unless it has something that is not meant for them.
        var bare: TransferResult? = result
        if rules.setsCookies || result.hasMoreThanOneHead {
            bare = head.withUnsafeBytes { try? TransferResult(id: 1, head: $0, body: result.body) }
        }
        guard let bare else { return nil }
        var entry = head.withUnsafeBytes { head in
            CacheEntry(marks, attributes: attributes.encoded, head: head, body: result.body)
        }
        entry.usefulTime = .microseconds(plan.terms.time) + .microseconds(max(mode.window, request.cacheMode.window))
        return KeptResponse(stored: StoredResponse(bare, marks, attributes), entry: entry)
    }

    private func refusal<R: Request>(
        of response: Response, _ rules: CacheRules, _ request: R, _ plan: CachePlan
    ) -> CacheRefusal? {
        let status = response.status
        if status == 206 || status == 304 { return .partial }
        if response.framing == .untilClose { return .untilClose }
        if rules.forbidsStoring { return .noStore }
        if let asked = sentValue(of: "Cache-Control"), CacheRules.forbidsStoring(asked) { return .noStore }
        // Fields that an adapter has added are not known when the response is looked up.
        let added = response.origin?.added ?? []
        if rules.variesByAnything || rules.varying.contains(where: { name in added.contains { equalNames($0, name) } })
        {
            return .vary
        }
        // An agent without a jar sends no cookies but those of the request, which its variance has.
        if core.configuration.keepsCookies, rules.varying.contains("cookie"),
            core.hasCookies || response.origin?.hasUnknownCredentials == true
        {
            return .vary
        }
        if !plan.hasSensitiveData && (response.origin?.hasUnknownCredentials == true || core.hasCookies) {
            return .unknownCredentials
        }
        if rules.isPersonal && !plan.isOwned { return .notShared }
        if response.bodyLength + Int(clamping: response.result.headBytesReceived) > core.cache?.maxEntryBytes ?? 0 {
            return .tooLarge
        }
        return request.shouldCache(response) ? nil : .request
    }
}

/// What the head of a response says about storing it (RFC 9111, 5.2.2; RFC 9110, 12.5.5).
struct CacheRules {
    private(set) var forbidsStoring = false
    /// `private`, or a cookie: the response is meant for one user.
    private(set) var isPersonal = false
    private(set) var setsCookies = false
    /// `Vary` contains `*`, or more than ``VaryRules/most`` names.
    private(set) var variesByAnything = false
    /// In lower case and without duplicates. Codings that are decoded before the response is stored do not count. A
    /// coding that is not decoded makes the response usable only for requests that accept it, whatever the server says.
    private(set) var varying: [String] = []

    init(_ result: TransferResult) {
        var (isCoded, varies) = (false, false)
        for index in 0..<result.headerCount {
            result.withHeader(index) { name, value in
                switch name.count {
                case 4 where name.equals("vary"): varies = true
                case 10 where name.equals("set-cookie"), 11 where name.equals("set-cookie2"):
                    (setsCookies, isPersonal) = (true, true)
                case 13 where name.equals("cache-control"): readDirectives(value)
                case 16 where name.equals("content-encoding"):
                    if Self.words(value).contains(where: { !$0.isEmpty && $0 != "identity" }) { isCoded = true }
                default: break
                }
            }
        }
        if varies { readVary(Headers(result)) }
        if isCoded && !result.isDecoded { varying.append("accept-encoding") }
    }

    private mutating func readVary(_ headers: Headers) {
        let names = VaryRules.names(headers)
        variesByAnything = names == nil
        varying = (names ?? []).filter { $0 != "accept-encoding" }
    }

    private mutating func readDirectives(_ value: UnsafeRawBufferPointer) {
        for word in Self.words(value) {
            let name = word.prefix { $0 != "=" }
            if name == "no-store" { forbidsStoring = true }
            if name == "private" { isPersonal = true }
        }
    }

    /// Whether a request forbids storing its response.
    static func forbidsStoring(_ directives: String) -> Bool {
        Array(directives.utf8).withUnsafeBytes { words($0).contains { $0.prefix { $0 != "=" } == "no-store" } }
    }

    private static func words(_ value: UnsafeRawBufferPointer) -> [String] {
        value.split(separator: 0x2C).map { word in
            let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
            let bare = word.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
            return String(decoding: bare.map(lowercased), as: UTF8.self)
        }
    }

    /// Status line and fields as they are stored: without cookies, which were meant for one user at one time.
    static func keptHead(_ result: TransferResult) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(512)
        head.append(
            contentsOf: "HTTP/\(result.httpVersion == 20 ? "2" : result.httpVersion == 10 ? "1.0" : "1.1") ".utf8)
        head.append(contentsOf: "\(result.status) \r\n".utf8)
        for index in 0..<result.headerCount {
            result.withHeader(index) { name, value in
                if name.equals("set-cookie") || name.equals("set-cookie2") { return }
                head.append(contentsOf: name)
                head.append(contentsOf: [0x3A, 0x20])
                head.append(contentsOf: value)
                head.append(contentsOf: [0x0D, 0x0A])
            }
        }
        head.append(contentsOf: [0x0D, 0x0A])
        return head
    }
}

extension UnsafeRawBufferPointer {
    /// Compares with a name in lower case.
    fileprivate func equals(_ name: StaticString) -> Bool {
        guard count == name.utf8CodeUnitCount else { return false }
        for index in 0..<count where lowercased(self[index]) != name.utf8Start[index] { return false }
        return true
    }
}

/// The stored attributes of a response, in addition to head and body.
struct CacheAttributes: Sendable, Equatable {
    /// The redacted URL after redirects; `nil` if there were none.
    var url: String?
    /// The names of the request's header fields in `Vary`, in lower case (RFC 9110, 12.5.5).
    var varying: [String] = []
    /// The digest of their values.
    var variance = CacheDigest.none
}

extension CacheAttributes {
    /// Decodes the attributes of an entry; `nil` if they are invalid.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = AttributeReader(bytes[...])
        guard reader.byte() == Self.format, let variance = reader.bytes(CacheDigest.count), let url = reader.text(),
            let varying = reader.text(), reader.isAtEnd
        else { return nil }
        self.variance = CacheDigest(bytes: UnsafeRawBufferPointer(rebasing: variance))
        self.url = url.isEmpty ? nil : url
        self.varying = varying.split(separator: " ").map(String.init)
    }

    private static let format: UInt8 = 1

    var encoded: [UInt8] {
        var bytes = [Self.format]
        variance.withBytes { bytes.append(contentsOf: $0) }
        bytes.appendCounted(url ?? "")
        bytes.appendCounted(varying.joined(separator: " "))
        return bytes
    }
}

extension CacheStage {
    /// The response that another run, usually in another process, fetches for this one. `nil` if this run has to fetch
    /// it, also because the other takes too long.
    mutating func answerOfOther(_ call: Call, _ plan: CachePlan, _ control: RunControl) async -> Answer? {
        guard let cache = core.cache, let time = cache.leaseTime else { return nil }
        let end = ContinuousClock.now + min(time, .seconds(3600))
        var pause = LeasePause()
        while true {
            let answered: CacheLease?? = await control.wait(until: call.end) { done in
                cache.lease(plan.key, done)
            }
            guard let granted = answered else { return .refused(control.overdue(url: call.url)) }
            // Whoever had it before may have stored it since this run looked.
            switch await find(for: call.request, plan, control, until: call.end) {
            case .verdict(.fresh(let stored, let trace), _):
                return Answer(stored, trace, plan)
            case .verdict: break
            case .brokenOff: return .refused(control.overdue(url: call.url))
            }
            lease = granted
            if granted != nil || ContinuousClock.now >= end { return nil }
            guard await pause.wait(control, until: call.end, by: core) else {
                return .refused(control.overdue(url: call.url))
            }
        }
    }
}
