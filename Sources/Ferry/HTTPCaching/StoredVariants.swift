import FerryCache
import FerrySynchronization
import FerryTransport

/// One response stored under RFC 9111: its head without the fields of a connection, its whole body, and what was known
/// when it arrived.
final class StoredVariant: Sendable {
    /// When the request left and when the response came, in microseconds since 1970 (RFC 9111, 4.2.3).
    struct Times: Sendable, Equatable {
        var request: CacheTime
        var response: CacheTime
        /// The age of the response when it arrived, in microseconds.
        var initialAge: Int64
    }

    let result: TransferResult
    let times: Times
    /// Whether it responds to HEAD; it has no body and serves no other method.
    let isHead: Bool
    /// Whether a content coding was decoded, whatever the head says. Ranges of such a body are not the server's ranges.
    let isDecoded: Bool
    /// The request fields that it varies by, in lower case, and a digest of their values.
    let varying: [String]
    let variance: CacheDigest
    let directives: ResponseDirectives
    let lifetime: Freshness.Lifetime
    let validators: Validators
    /// Until this time it is used for a request without cache directives, in microseconds since 1970; 0 means never.
    let freshUntil: CacheTime
    /// Whether a 304 that repeats its fields and changes only dates can update it, see ``Renewal``.
    let isRenewable: Bool
    /// The fields that request its validation if no other response is stored for its URL (RFC 9111, 4.3.1).
    let conditions: HeaderBlock
    /// Whether there are such fields.
    var hasConditions: Bool { !conditions.bytes.isEmpty }
    /// The last 304 that changed nothing.
    private let confirmation = Mutex<Confirmation?>(nil)

    init(
        _ result: TransferResult, _ times: Times, isHead: Bool, isDecoded: Bool, varying: [String],
        variance: CacheDigest, isShared: Bool
    ) {
        // The cache counts its head and body; what a run reads from it belongs to that run.
        result.keepNothing()
        let headers = Headers(result)
        let directives = ResponseDirectives(headers)
        let lifetime = Freshness.lifetime(
            status: result.status, headers, directives, isShared: isShared, responseTime: times.response)
        self.result = result
        self.times = times
        self.isHead = isHead
        self.isDecoded = isDecoded
        self.varying = varying
        self.variance = variance
        self.directives = directives
        self.lifetime = lifetime
        validators = Validators(headers)
        conditions = HeaderBlock(ValidationRules.conditions(selected: validators, all: []))
        isRenewable = Renewal.applies(to: result, directives)
        freshUntil = Self.freshUntil(directives, lifetime, times)
    }

    private static func freshUntil(
        _ directives: ResponseDirectives, _ lifetime: Freshness.Lifetime, _ times: Times
    ) -> CacheTime {
        // At the last microsecond it is stale (RFC 9111, 4.2: fresh while its age is less than its lifetime).
        let isFree = !directives.noCache && lifetime.microseconds > times.initialAge
        return isFree ? times.response + lifetime.microseconds - times.initialAge : 0
    }

    /// The same after a renewal. `nil` without memory.
    init?(_ old: StoredVariant, _ renewal: Renewal, _ times: Times, isShared: Bool) {
        if renewal.changes.isEmpty {
            result = old.result
        } else {
            guard let made = TransferResult(revising: old.result, renewal.changes) else { return nil }
            made.keepNothing()
            result = made
        }
        directives = old.directives
        // What depends on no date stays.
        let isConstant = directives.maxAge != nil || isShared && directives.sharedMaxAge != nil
        lifetime =
            isConstant
            ? old.lifetime
            : Freshness.lifetime(
                status: result.status, Headers(result), directives, isShared: isShared, responseTime: times.response)
        self.times = times
        (isHead, isDecoded, isRenewable) = (old.isHead, old.isDecoded, old.isRenewable)
        (varying, variance, validators, conditions) = (old.varying, old.variance, old.validators, old.conditions)
        freshUntil = Self.freshUntil(directives, lifetime, times)
    }

    var headers: Headers { Headers(result) }

    /// What a 304 changes; `nil` if it is more than dates.
    func renewal(by response: TransferResult) -> Renewal? {
        if let last = confirmation.withLock({ $0 }), let renewal = last.renewal(by: response) { return renewal }
        guard let renewal = Renewal(of: result, by: response) else { return nil }
        if let made = Confirmation(renewal, by: response) { remember(made) }
        return renewal
    }

    private func remember(_ made: Confirmation) {
        // Freed after the lock is released.
        let old = confirmation.withLock { last in
            defer { last = made }
            return last
        }
        withExtendedLifetime(old) {}
    }

    /// Its age; `nil` if the clock was set back after it arrived.
    func age(at now: CacheTime) -> Int64? {
        Freshness.currentAge(initial: times.initialAge, responseTime: times.response, now: now)
    }

    /// The approximate number of bytes in memory.
    var count: Int { Int(clamping: result.bodyLength) + Int(clamping: result.headBytesReceived) + 1024 }

    /// The head as stored: a status line and fields.
    static func head(status: Int, httpVersion: Int, _ fields: some Sequence<Headers.Field>) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(512)
        let version = httpVersion == 20 ? "2" : httpVersion == 10 ? "1.0" : "1.1"
        head.append(contentsOf: "HTTP/\(version) \(status) \r\n".utf8)
        for field in fields {
            head.append(contentsOf: field.name.utf8)
            head.append(contentsOf: [0x3A, 0x20])
            head.append(contentsOf: field.value.utf8)
            head.append(contentsOf: [0x0D, 0x0A])
        }
        head.append(contentsOf: [0x0D, 0x0A])
        return head
    }

    /// A response with another head, and with a part of the body or none.
    static func result(
        status: Int, httpVersion: Int = 11, _ fields: some Sequence<Headers.Field>, body: UnsafeRawBufferPointer? = nil
    ) -> TransferResult? {
        let head = head(status: status, httpVersion: httpVersion, fields)
        return head.withUnsafeBytes { head in
            try? TransferResult(id: 1, head: head, body: body ?? UnsafeRawBufferPointer(start: nil, count: 0))
        }
    }

    /// Whether the disk must be updated. If only dates have changed, the entry on disk just becomes stale earlier, and
    /// writing would cost as much as fetching.
    func isWorthWriting(as new: StoredVariant, by fields: [Headers.Field]) -> Bool {
        if new.variance != variance || new.freshUntil < freshUntil { return true }
        // An entry that is rarely validated costs little to write, and is useful for other processes and after a
        // restart.
        if new.times.response - times.response > 60 * Freshness.second { return true }
        let headers = headers
        return fields.contains { field in
            if equalNames(field.name, "Date") || equalNames(field.name, "Expires") { return false }
            return headers[field.name] != new.headers[field.name]
        }
    }
}

/// The stored responses of one URL for one user, newest first (RFC 9111, 4.1). Sendable because its superclass is.
final class StoredVariants: StoredEntry, @unchecked Sendable {
    let all: [StoredVariant]
    /// Whether a run has looked for a newer entry in the storage since this one is in memory.
    private let compared = Atomic<Bool>(false)

    /// The maximum number per URL; the oldest are dropped.
    static let most = 16
    /// The first byte of the metadata of an entry.
    static let format: UInt8 = 2

    /// The first of these responses that fit into `maxBytes`.
    init(_ variants: [StoredVariant], stored: CacheTime, maxBytes: Int = .max) {
        var kept: [StoredVariant] = []
        var count = 0
        for variant in variants.prefix(Self.most) {
            let (sum, isTooMuch) = count.addingReportingOverflow(variant.count)
            if isTooMuch || (sum > maxBytes && !kept.isEmpty) { break }
            kept.append(variant)
            count = sum
        }
        all = kept
        super.init(CacheEntry.Marks(stored: stored), count: count)
    }

    override var variants: StoredVariants? { self }

    var isCompared: Bool { compared.load(ordering: .relaxed) }

    /// Whether the caller is the first to look for a newer entry.
    func beginsComparison() -> Bool { !compared.exchange(true, ordering: .relaxed) }

    /// Reads an entry of the store; `nil` if any part of it is invalid.
    convenience init?(_ entry: CacheEntry) {
        let read: [StoredVariant]? = entry.withAttributes { attributes in
            entry.withHead { head in entry.withBody { Self.variants(attributes, head, $0) } }
        }
        guard let read else { return nil }
        self.init(read, stored: entry.marks.stored)
    }

    private static func variants(
        _ attributes: UnsafeRawBufferPointer, _ head: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer
    ) -> [StoredVariant]? {
        var reader = AttributeReader(attributes[...])
        guard reader.byte() == format, let count = reader.byte() else { return nil }
        var (heads, bodies) = (head[...], body[...])
        var variants: [StoredVariant] = []
        for _ in 0..<count {
            guard let request = reader.number(), let response = reader.number(), let age = reader.number(),
                let flags = reader.byte(), let variance = reader.bytes(CacheDigest.count), let varying = reader.text(),
                let headCount = reader.number(), let bodyCount = reader.number(),
                (0...Int64(heads.count)).contains(headCount), (0...Int64(bodies.count)).contains(bodyCount),
                // The sum of two such times is still valid.
                [request, response].allSatisfy({ $0.magnitude < 1 << 60 }), (0..<1 << 60).contains(age),
                let result = try? TransferResult(
                    id: 1, head: UnsafeRawBufferPointer(rebasing: heads.prefix(Int(headCount))),
                    body: UnsafeRawBufferPointer(rebasing: bodies.prefix(Int(bodyCount))))
            else { return nil }
            heads = heads.dropFirst(Int(headCount))
            bodies = bodies.dropFirst(Int(bodyCount))
            variants.append(
                StoredVariant(
                    result, StoredVariant.Times(request: request, response: response, initialAge: age),
                    isHead: flags & 1 != 0, isDecoded: flags & 2 != 0,
                    varying: varying.split(separator: " ").map(String.init),
                    variance: CacheDigest(bytes: UnsafeRawBufferPointer(rebasing: variance)),
                    isShared: flags & 4 != 0))
        }
        return reader.isAtEnd && heads.isEmpty && bodies.isEmpty ? variants : nil
    }

    /// The entry for the store.
    func entry(isShared: Bool) -> CacheEntry {
        var attributes: [UInt8] = [Self.format, UInt8(all.count)]
        var heads: [UInt8] = []
        var bodies: [UInt8] = []
        for variant in all {
            let head = StoredVariant.head(
                status: variant.result.status, httpVersion: variant.result.httpVersion, variant.headers)
            for time in [variant.times.request, variant.times.response, variant.times.initialAge] {
                attributes.append(number: time)
            }
            attributes.append((variant.isHead ? 1 : 0) | (variant.isDecoded ? 2 : 0) | (isShared ? 4 : 0))
            variant.variance.withBytes { attributes.append(contentsOf: $0) }
            attributes.appendCounted(variant.varying.joined(separator: " "))
            attributes.append(number: Int64(head.count))
            attributes.append(number: Int64(variant.result.body.count))
            heads += head
            if all.count > 1 { bodies += variant.result.body }
        }
        return heads.withUnsafeBytes { heads in
            if all.count == 1 {
                return CacheEntry(marks, attributes: attributes, head: heads, body: all[0].result.body)
            }
            return bodies.withUnsafeBytes { CacheEntry(marks, attributes: attributes, head: heads, body: $0) }
        }
    }

    /// The index of the newest response that matches the method and the values of the request's fields (RFC 9111, 4.1).
    func index(isHead: Bool, variance: ([String]) -> CacheDigest) -> Int? {
        all.firstIndex { variant in
            if variant.isHead && !isHead { return false }
            return variant.varying.isEmpty || variance(variant.varying) == variant.variance
        }
    }
}

extension [StoredVariant] {
    /// These responses, in which `new` replaces `old`, which a 304 has confirmed. `nil` if one of those was removed
    /// meanwhile, or if another run has stored the response to a later request, which `serves` this one, too: what the
    /// 304 confirms is older.
    func replacing(
        _ old: [StoredVariant], by new: [StoredVariant], since requestTime: CacheTime,
        serves: (StoredVariant) -> Bool
    ) -> [StoredVariant]? {
        func isReplaced(_ one: StoredVariant) -> Bool {
            !one.isHead && new.contains { $0.variance == one.variance && $0.varying == one.varying }
        }
        func isSame(_ one: StoredVariant, _ other: StoredVariant) -> Bool {
            one.result === other.result || one.validators == other.validators && one.validators.isAny
        }
        func isSpokenOf(_ one: StoredVariant) -> Bool { old.contains { isSame($0, one) } }
        // A response from the future arrived before the clock was set back.
        let now = new.first?.times.response ?? .max
        func isNewer(_ one: StoredVariant) -> Bool { one.times.request >= requestTime && one.times.response <= now }
        if !old.allSatisfy({ one in contains { isSame($0, one) } }) { return nil }
        // The 304 to a later request has renewed it already.
        if contains(where: { isReplaced($0) && isNewer($0) && $0.times.request > requestTime }) { return nil }
        if contains(where: { (isReplaced($0) || serves($0)) && !isSpokenOf($0) && isNewer($0) }) { return nil }
        let others = filter { one in !isReplaced(one) && !old.contains { $0.result === one.result } }
        return others.filter(isNewer) + new + others.filter { !isNewer($0) }
    }
}

/// The responses that were stored most recently, with the order of their requests: a response to an earlier request
/// that arrives later is older (RFC 9111, 4). This is also known if the newer one is not in memory. The requests are
/// numbered, not timed, because the clock may be set back. Thread-safe.
final class RecentStores: Sendable {
    private struct Variant: Sendable {
        var varying: [String]
        var variance: CacheDigest
        var isHead: Bool
        /// The number of the request.
        var sent: UInt64
    }

    private struct Record: Sendable {
        /// The number of the last change.
        var changed: UInt64
        var variants: [Variant] = []
    }

    private struct State {
        var records: [CacheDigest: Record] = [:]
        /// The highest number of a change that is no longer in the table.
        var forgotten: UInt64 = 0
    }

    private let state = Mutex(State())
    private let last = Atomic<UInt64>(0)
    /// The maximum number of keys remembered at once.
    private static let most = 4096

    /// The number of a request that is about to be sent. Take it before looking at what is stored.
    func next() -> UInt64 { last.add(1, ordering: .relaxed).newValue }

    /// A response is stored; `sent` is the number of its request.
    func note(_ variant: StoredVariant, under key: CacheKey, sent: UInt64) {
        note(
            Variant(varying: variant.varying, variance: variant.variance, isHead: variant.isHead, sent: sent),
            under: key)
    }

    /// A response with a time to live is stored, the only one under its key.
    func note(_ key: CacheKey, sent: UInt64) {
        note(Variant(varying: [], variance: .none, isHead: false, sent: sent), under: key)
    }

    private func note(_ new: Variant, under key: CacheKey) {
        change(key) { variants in
            let old = variants.firstIndex {
                $0.isHead == new.isHead && $0.variance == new.variance && $0.varying == new.varying
            }
            var new = new
            // A 304 to an earlier request may have confirmed it.
            new.sent = max(new.sent, old.map { variants.remove(at: $0).sent } ?? 0)
            variants.append(new)
            if variants.count > StoredVariants.most { variants.removeFirst() }
        }
    }

    /// Some of the stored responses were removed.
    func noteRemoval(under key: CacheKey) { change(key) { _ in } }

    private func change(_ key: CacheKey, _ body: (inout [Variant]) -> Void) {
        let (digest, number) = (key.digest, next())
        state.withLock { state in
            if state.records.count >= Self.most && state.records[digest] == nil {
                let middle = state.records.values.map(\.changed).sorted()[Self.most / 2]
                state.records = state.records.filter { $0.value.changed > middle }
                state.forgotten = middle
            }
            body(&state.records[digest, default: Record(changed: number)].variants)
            state.records[digest]?.changed = number
        }
    }

    /// Whether a response was stored under this key after the number was taken; `true` also if that is no longer known.
    func isNoted(_ key: CacheKey, since number: UInt64) -> Bool {
        state.withLock { $0.forgotten > number || ($0.records[key.digest]?.changed ?? 0) > number }
    }

    /// Whether the response to a later request was stored that `serves` this one, too. It gets the fields in `Vary` and
    /// the digest of their values. A response to HEAD serves no GET.
    func hasNewer(
        under key: CacheKey, than sent: UInt64, isHead: Bool, _ serves: ([String], CacheDigest) -> Bool
    ) -> Bool {
        let record = state.withLock { $0.records[key.digest] }
        return record?.variants.contains {
            $0.sent > sent && (isHead || !$0.isHead) && serves($0.varying, $0.variance)
        } ?? false
    }

    /// Whether the response to a later request with a time to live was stored.
    func hasNewer(under key: CacheKey, than sent: UInt64) -> Bool {
        hasNewer(under: key, than: sent, isHead: false) { _, _ in true }
    }

    /// Whether this one is the response to a later request.
    func isNewer(_ variant: StoredVariant, under key: CacheKey, than sent: UInt64) -> Bool {
        hasNewer(under: key, than: sent, isHead: variant.isHead) {
            $0 == variant.varying && $1 == variant.variance
        }
    }
}
