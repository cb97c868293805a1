import FerryCache
import FerrySynchronization
import FerryTransport

extension HTTPCacheStage {
    /// Handles a response: stores it, updates or removes stored ones, and decides what is delivered.
    mutating func received(
        _ result: TransferResult, _ control: RunControl, until deadline: ContinuousClock.Instant?
    ) async -> Received {
        defer {
            lead?.end()
            lease = nil
        }
        let now = cache.clock()
        let response = Headers(result)
        invalidate(result, response)
        if result.status == 304, isAnswerableMethod {
            return await validated(by: result, response, now, control, until: deadline)
        }
        var status = CacheStatus.forwarded(forward)
        status.isCollapsed = isCollapsed
        if standIn != nil && StatusCodes.areServerFailures.contains(result.status) {
            // Like a failure of the network, such a response is not stored.
            let stands = CacheTraceStatus(standInStatus(result.status))
            standIn?.trace.more = stands
            return .deliver(result, trace(status), validation: nil)
        }
        // A reload has not looked, but other variants of the URL stay.
        if stored == nil, plan.mode.way == .reload, !isUnknown, isAnswerableMethod {
            _ = await find(control, until: deadline)
        }
        let directives = ResponseDirectives(response)
        let lifetime = Freshness.lifetime(
            status: result.status, response, directives, isShared: plan.terms.isShared, responseTime: now)
        let refusal = refusal(of: result, response, directives, lifetime)
        // A response to HEAD that may not be stored does not update that to GET (RFC 9111, 4.3.5).
        let updates = isHead && ![.noStore, .notShared, .vary, .invalidated].contains(refusal)
        if updates { updateByHead(result, response, now) }
        if let refusal {
            cache.counters.refused(refusal)
            if lease != nil { cache.unshared.note(key) }
            status.detail = refusal.rawValue
            if makesOutdated(result) && !(refusal == .invalidated && staysStale) {
                // The response to GET was updated or removed.
                removeSelected(now, onlyHeads: updates && (200..<300).contains(result.status))
            }
            return .deliver(result, trace(status), validation: nil)
        }
        let fields = StoringRules.storedFields(response, directives, isShared: plan.terms.isShared)
        let isSame = fields.count == response.count && !result.hasMoreThanOneHead
        let bare =
            isSame
            ? result
            : StoredVariant.result(
                status: result.status, httpVersion: result.httpVersion, fields, body: result.body)
        guard let bare else { return .deliver(result, trace(status), validation: nil) }
        let varying = VaryRules.storedNames(response, isDecoded: result.isDecoded)
        let variant = StoredVariant(
            bare,
            StoredVariant.Times(
                request: requestTime, response: now,
                initialAge: Freshness.initialAge(response, requestTime: requestTime, responseTime: now)),
            isHead: isHead, isDecoded: result.isDecoded, varying: varying, variance: variance(varying),
            isShared: plan.terms.isShared)
        if cache.leaseTime != nil { cache.unshared.remove(key) }
        status.isStored = await change([variant], now, control, until: deadline) { [stage = self] old in
            stage.variants(with: variant, in: old, now)
        }
        if status.isStored {
            status.ttl = .seconds((variant.lifetime.microseconds - variant.times.initialAge).flooredSeconds)
        } else if isAnswerableMethod && cache.isInvalidated(key, since: invalidationMark) {
            cache.counters.refused(.invalidated)
            status.detail = CacheRefusal.invalidated.rawValue
            if makesOutdated(result) && !staysStale { removeSelected(now) }
        }
        return .deliver(result, trace(status), validation: nil)
    }

    /// Handles a failed transfer. The head of an unsafe request's response may have come: the change is made.
    mutating func failed(_ answer: Answer) {
        if case .result(let result) = answer { invalidate(by: result) }
        lead?.end()
        lease = nil
    }

    private var isAnswerableMethod: Bool { sent.method == "GET" || isHead }

    private func trace(_ status: CacheStatus) -> CacheTrace {
        var trace = CacheTrace(outcome: .miss(CacheMiss(forward)))
        trace.more = CacheTraceStatus(status)
        return trace
    }

    private func standInStatus(_ status: Int) -> CacheStatus {
        var made = standIn?.trace.status ?? CacheStatus()
        (made.forward, made.forwardStatus) = (forward, status)
        made.isHit = false
        return made
    }

    // MARK: Storing

    private func refusal(
        of result: TransferResult, _ response: Headers, _ directives: ResponseDirectives, _ lifetime: Freshness.Lifetime
    ) -> CacheRefusal? {
        if isOwnerUnknown { return .unknownCredentials }
        let exchange = StoringRules.Exchange(
            method: sent.method, url: sent.url, request: sent.fields, status: result.status, response: response,
            isAuthorized: sent.fields.contains("Authorization"), isShared: plan.terms.isShared)
        if let refusal = StoringRules.refusal(exchange, directives, lifetime) { return refusal }
        if result.status == 206 { return .partial }
        if result.isFramedByClose { return .untilClose }
        if sent.hasBody && isAnswerableMethod { return .request }
        // An adapter may add another value next time, and the value is not known before the lookup.
        let varying = VaryRules.names(response) ?? []
        if core.addsCookies(to: varying) { return .vary }
        if isTokenRefused(result) { return .status }
        if varying.contains(where: { name in sent.added.contains { equalNames($0, name) } }),
            plan.terms.sensitiveData == .none
        {
            return .vary
        }
        if result.body.count + Int(clamping: result.headBytesReceived) > cache.maxEntryBytes { return .tooLarge }
        if isAnswerableMethod && cache.isInvalidated(key, since: invalidationMark) { return .invalidated }
        return request.shouldCache(Response(result, url: sent.url)) ? nil : .request
    }

    /// Whether a response that is not stored shows that the stored one is outdated.
    private func makesOutdated(_ result: TransferResult) -> Bool {
        isAnswerableMethod && result.status < 500 && !isTokenRefused(result)
            && ![206, 304, 401, 407, 408, 412, 416, 429].contains(result.status)
    }

    /// Whether the token in the request was refused, for example by a redirect to a page for signing in: the server may
    /// accept another token of the same owner.
    private func isTokenRefused(_ result: TransferResult) -> Bool {
        if plan.terms.sensitiveData == .none || result.status < 300 { return false }
        if result.status == 401 || result.status == 407 { return true }
        return core.tokens?.isRefused(Response(result, url: sent.url)) ?? false
    }

    /// Whether the stored response was stale when this run asked, and only others have removed something since, perhaps
    /// another entry. Then it stays: it is validated before it is used, or used as a stale one. If each process removed
    /// it and told the others, one removal would empty the storage.
    private var staysStale: Bool {
        forward == .stale && plan.mode.way != .reload
            && !cache.hasInvalidated(key, since: invalidationMark)
    }

    private func removeSelected(_ now: CacheTime, onlyHeads: Bool = false) {
        guard let stored, !stored.all.isEmpty else { return }
        cache.changing.withLock { _ in
            guard let current = currentVariants else { return onlyHeads ? () : cache.remove(key) }
            let left = current.filter {
                !serves($0.varying, $0.variance) || isNewer($0, now) || (onlyHeads && !$0.isHead)
            }
            if left.count == current.count { return }
            if left.isEmpty { return cache.remove(key) }
            let made = StoredVariants(left, stored: now, maxBytes: cache.maxEntryBytes)
            cache.keep(made, under: key, made.entry(isShared: plan.terms.isShared))
            cache.recentStores.noteRemoval(under: key)
        }
    }

    /// The stored variants with a new one, behind the responses to later requests. `nil` if one of those serves this
    /// request: another run, perhaps in another process, has sent its request later, and its response is stored.
    private func variants(with own: StoredVariant, in old: [StoredVariant], _ now: CacheTime) -> [StoredVariant]? {
        var new = own
        if cache.recentStores.hasNewer(under: key, than: mark, isHead: isHead, serves) { return nil }
        let newer = old.filter { isNewer($0, now) }
        let serving = newer.filter { serves($0.varying, $0.variance) }
        if serving.contains(where: { isHead || !$0.isHead }) { return nil }
        // A response to HEAD serves no GET, but the last one tells whether this one is out of date (RFC 9111, 4.3.5).
        let head = serving.filter { (200..<300).contains($0.result.status) }.max { $0.times.request < $1.times.request }
        if let head {
            guard new.result.status == 200, ValidationRules.isSame(new.headers, asHead: head.headers),
                let updated = updated(new, by: Array(head.headers), head.times)
            else { return nil }
            new = updated
        }
        let earlier = old.filter { one in
            let isReplaced = one.variance == new.variance && one.varying == new.varying && (one.isHead || !isHead)
            return !isReplaced && !newer.contains { $0 === one }
        }
        return newer + [new] + earlier
    }

    /// A response to GET, updated by a response to HEAD (RFC 9111, 4.3.5). Its body is still as old as its own request,
    /// and a response to a later GET is newer.
    private func updated(
        _ variant: StoredVariant, by fields: [Headers.Field], _ times: StoredVariant.Times
    ) -> StoredVariant? {
        let times = StoredVariant.Times(
            request: variant.times.request, response: times.response, initialAge: times.initialAge)
        guard let made = variant.updated(by: fields, times, isShared: plan.terms.isShared) else { return nil }
        if made.varying == variant.varying { return made }
        return StoredVariant(
            made.result, times, isHead: false, isDecoded: made.isDecoded, varying: made.varying,
            variance: variance(made.varying), isShared: plan.terms.isShared)
    }

    /// Whether this is the response to a later request. One from the future arrived before the clock was set back.
    private func isNewer(_ one: StoredVariant, _ now: CacheTime) -> Bool {
        one.times.request > requestTime && one.times.response <= now
            || cache.recentStores.isNewer(one, under: key, than: mark)
    }

    /// Whether a response with this `Vary` serves the request.
    private func serves(_ varying: [String], _ variance: CacheDigest) -> Bool {
        varying.isEmpty || self.variance(varying) == variance
    }

    /// The variants that are stored now; another run may have changed them since this one looked. `nil` if they are
    /// unknown: they are not in memory, and those that this run has read may have been removed or replaced.
    private var currentVariants: [StoredVariant]? {
        if let current = cache.recallEntry(key)?.variants { return current.all }
        let isUnchanged = cache.removals(of: key) == removals && !cache.recentStores.isNoted(key, since: lookMark)
        return isUnchanged ? stored?.all ?? [] : nil
    }

    /// Replaces the stored variants with those that `make` returns, unless it returns `nil`. `new` are those of this
    /// run. Without `writes` it changes only the memory. With `renews`, variants that may have been removed meanwhile
    /// stay removed. Returns whether it has replaced them.
    private func change(
        _ new: [StoredVariant], _ now: CacheTime, writes: Bool = true, renews: Bool = false, _ control: RunControl,
        until deadline: ContinuousClock.Instant?, _ make: @Sendable ([StoredVariant]) -> [StoredVariant]?
    ) async -> Bool {
        let isAwaited = writes && plan.terms.writing == .synchronous
        if !isAwaited { return replace(new, now, writes: writes, renews: renews, make, nil) }
        let isReplaced: Bool? = await control.wait(until: deadline) { done in
            if !replace(new, now, writes: writes, renews: renews, make, { _ in done(true) }) { done(false) }
        }
        return isReplaced ?? true  // It does not wait for the disk any longer.
    }

    private func replace(
        _ new: [StoredVariant], _ now: CacheTime, writes: Bool, renews: Bool,
        _ make: ([StoredVariant]) -> [StoredVariant]?, _ done: (@Sendable (Bool) -> Void)?
    ) -> Bool {
        cache.changing.withLock { _ in
            // The application may have decided long ago whether it is stored.
            if !renews && isAnswerableMethod && cache.isInvalidated(key, since: invalidationMark) { return false }
            guard let current = currentVariants ?? (renews ? nil : []), let variants = make(current) else {
                return false
            }
            let made = StoredVariants(variants, stored: now, maxBytes: cache.maxEntryBytes)
            cache.keep(made, under: key, writes ? made.entry(isShared: plan.terms.isShared) : nil, done)
            // Afterwards, so that nobody who has read what was stored before takes it for current.
            for variant in new { cache.recentStores.note(variant, under: key, sent: mark) }
            return true
        }
    }

    // MARK: Validation

    private mutating func validated(
        by result: TransferResult, _ response: Headers, _ now: CacheTime, _ control: RunControl,
        until deadline: ContinuousClock.Instant?
    ) async -> Received {
        var status = CacheStatus.forwarded(forward)
        status.isCollapsed = isCollapsed
        // If the caller has sent the condition, the 304 goes to the caller. It updates the cache as well.
        let isOfCaller = !asksValidation
        guard let stored else { return .deliver(result, trace(status), validation: nil) }
        let validators = Validators(response)
        let known = stored.all.map(\.validators)
        var which = ValidationRules.freshened(
            by: validators, selected: isOfCaller ? nil : selected, chosen: selected, known)
        if isOfCaller && !validators.isAny { which = [] }
        // A response to HEAD has no body that could answer a GET.
        if !isHead { which.removeAll { stored.all[$0].isHead } }
        guard let first = which.first else {
            return isOfCaller ? .deliver(result, trace(status), validation: nil) : .again
        }
        var fields = StoringRules.storedFields(
            response, ResponseDirectives(response), isShared: plan.terms.isShared)
        addDate(to: &fields, now)
        let age = Freshness.initialAge(
            Headers(fields + ageField(response)), requestTime: requestTime, responseTime: now)
        let times = StoredVariant.Times(request: requestTime, response: now, initialAge: age)
        // The variant that the request selects, or will select from now on.
        let index = selected.map { which.contains($0) ? $0 : first } ?? first
        var (updated, isWritten) = ([StoredVariant](), false)
        for place in which {
            let old = stored.all[place]
            guard let new = old.updated(by: fields, times, isShared: plan.terms.isShared) else { continue }
            let own = place == index ? new.answering({ variance($0) }, isShared: plan.terms.isShared) : nil
            // It still serves the requests that it has served, unless other fields decide from now on, whose values are
            // only known of this request.
            let isKept = new.varying == old.varying || (place == index && own == nil)
            if isKept { updated.insert(new, at: place == index ? 0 : updated.count) }
            // From now on it serves requests like this one, too.
            if let own { updated.insert(own, at: 0) }
            isWritten = isWritten || own != nil || !isKept || old.isWorthWriting(as: new, by: fields)
        }
        guard let new = updated.first else { return .deliver(result, trace(status), validation: nil) }
        let old = stored.all[index]
        // The server may have sent it before the change that invalidated the stored response.
        let isInvalidated = cache.isInvalidated(key, since: invalidationMark)
        let isStorable =
            !new.directives.noStore && !directives.noStore
            && !isTakenBack(new.directives, from: old.directives) && VaryRules.names(new.headers) != nil
            && !core.addsCookies(to: new.varying)
        if isStorable && (isInvalidated || isOwnerUnknown || isForOneUser(new.directives)) {
            // The stored response stays as it is, unless it was removed.
        } else if isStorable {
            let replaced = which.map { stored.all[$0] }
            status.isStored = await change(updated, now, writes: isWritten, renews: true, control, until: deadline) {
                [updated, stage = self] current in
                // The response to a later HEAD says more about it (RFC 9111, 4.3.5).
                let isOvertaken = current.contains {
                    $0.isHead && stage.serves($0.varying, $0.variance) && stage.isNewer($0, now)
                }
                return isOvertaken
                    ? nil
                    : current.replacing(replaced, by: updated, since: stage.requestTime) {
                        stage.serves($0.varying, $0.variance)
                    }
            }
        } else {
            removeSelected(now)
        }
        cache.counters.validated()
        status.forwardStatus = 304
        status.ttl = .seconds((new.lifetime.microseconds - new.times.initialAge).flooredSeconds)
        guard !isOfCaller, let served = served(new, at: now) else {
            status.forwardStatus = nil
            return .deliver(result, trace(status), validation: nil)
        }
        var trace = CacheTrace(outcome: .validated(age: .microseconds(age)))
        (trace.isHTTP, trace.more) = (true, CacheTraceStatus(status))
        trace.remaining = new.lifetime.microseconds - age
        return .deliver(served, trace, validation: result)
    }

    /// Whether a later response takes a stored one from a shared cache (RFC 9111, 3.5 and 5.2.2.7). What came to a user
    /// without credentials stays.
    private func isTakenBack(_ new: ResponseDirectives, from old: ResponseDirectives) -> Bool {
        plan.terms.isShared && new.isPrivate || old.permitsSharing && isForOneUser(new)
    }

    /// Whether a shared cache must not store a response, because its request had credentials (RFC 9111, 3.5).
    private func isForOneUser(_ directives: ResponseDirectives) -> Bool {
        plan.terms.isShared && sent.fields.contains("Authorization") && !directives.permitsSharing
    }

    /// A response without a date has the date of its arrival (RFC 9110, 6.6.1), not the stored one.
    private func addDate(to fields: inout [Headers.Field], _ now: CacheTime) {
        if fields.contains(where: { equalNames($0.name, "Date") }) { return }
        let date = HTTPDate(secondsSince1970: now / Freshness.second)
        fields.append(Headers.Field(name: "Date", value: date.description))
    }

    private func ageField(_ response: Headers) -> [Headers.Field] {
        response["Age"].map { [Headers.Field(name: "Age", value: $0)] } ?? []
    }

    /// Updates the stored response to GET from a response to HEAD (RFC 9111, 4.3.5).
    private mutating func updateByHead(_ result: TransferResult, _ response: Headers, _ now: CacheTime) {
        guard (200..<300).contains(result.status), !isOwnerUnknown else { return }
        cache.changing.withLock { _ in
            var changed = currentVariants ?? []
            guard
                let index = changed.firstIndex(where: {
                    !$0.isHead && ($0.varying.isEmpty || variance($0.varying) == $0.variance)
                })
            else { return }
            if isNewer(changed[index], now) { return }
            // A response to a later HEAD has updated it already.
            if cache.recentStores.hasNewer(under: key, than: mark, isHead: true, serves)
                || changed.contains(where: { $0.isHead && serves($0.varying, $0.variance) && isNewer($0, now) })
            {
                return
            }
            let directives = ResponseDirectives(response)
            if ValidationRules.isSame(changed[index].headers, asHead: response), changed[index].result.status == 200,
                !directives.noStore, VaryRules.names(response) != nil
            {
                var fields = StoringRules.storedFields(response, directives, isShared: plan.terms.isShared)
                addDate(to: &fields, now)
                let age = Freshness.initialAge(response, requestTime: requestTime, responseTime: now)
                let times = StoredVariant.Times(request: requestTime, response: now, initialAge: age)
                guard let new = updated(changed[index], by: fields, times) else { return }
                changed[index] = new
            } else {
                changed.remove(at: index)
            }
            if changed.isEmpty { return cache.remove(key) }
            let made = StoredVariants(changed, stored: now, maxBytes: cache.maxEntryBytes)
            cache.keep(made, under: key, made.entry(isShared: plan.terms.isShared))
            cache.recentStores.noteRemoval(under: key)
            lookMark = cache.recentStores.next()
            stored = made  // The next change begins with it, also without memory.
        }
    }
}
