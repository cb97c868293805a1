import FerryCache
import FerryTransport

extension AgentCore {
    /// What a kept answer is worth to a run.
    func verdict<R: Request>(
        on stored: StoredResponse, _ plan: CachePlan, of request: R, now: CacheTime
    ) -> ResponseCache.Verdict {
        // Of a user who is logged in nobody knows whether it is meant for him.
        if !plan.hasSensitiveData && hasCookies { return .miss(.unknownCredentials) }
        let marks = stored.marks
        if let difference = plan.terms.difference(from: marks) { return .miss(CacheMiss(difference)) }
        guard let age = marks.age(at: now) else { return .miss(.expired) }
        let varying = stored.attributes.varying
        if !varying.isEmpty,
            variance(of: varying, in: request, isForeign: plan.isForeign) != stored.attributes.variance
        {
            return .miss(.varyMismatch)
        }
        if age <= plan.terms.time {
            return .fresh(stored, CacheTrace(outcome: .hit(age: .microseconds(age), isStale: false)))
        }
        let trace = CacheTrace(outcome: .hit(age: .microseconds(age), isStale: true))
        return .stale(stored, past: age - plan.terms.time, trace)
    }

    /// Of the values of these fields.
    private func variance<R: Request>(of names: [String], in request: R, isForeign: Bool) -> CacheDigest {
        var bytes: [UInt8] = []
        for name in names {
            bytes.appendCounted(name)
            let value = builder.sentValue(of: name, by: request, isForeign: isForeign)
            bytes.append(value == nil ? 0 : 1)
            bytes.appendCounted(value ?? "")
        }
        return CacheDigest(of: bytes)
    }

    /// An answer of the network's as it is to be kept; `nil` when it must not or shall not be.
    func kept<R: Request>(_ response: Response, of request: R, _ plan: CachePlan) -> KeptResponse? {
        guard let cache, !response.isFromCache else { return nil }
        let rules = CacheRules(response.result)
        if let refusal = refusal(of: response, rules, request, plan) {
            cache.counters.refused(refusal)
            // What was kept before is older than this, and not to be given for fresh any more.
            if let miss = response.cacheMiss, miss == .reload || miss == .expired { cache.remove(plan.key) }
            return nil
        }
        return kept(response, rules, of: request, plan, at: cache.clock())
    }

    /// In the forms in which it is kept, without asking whether it may be.
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
            attributes.variance = variance(of: rules.varying, in: request, isForeign: plan.isForeign)
        }
        let result = response.result
        let head = CacheRules.keptHead(result)
        // Hits share what came from the network, unless there is something in its head that is not theirs.
        var bare: TransferResult? = result
        if rules.setsCookies {
            bare = head.withUnsafeBytes { try? TransferResult(id: 1, head: $0, body: result.body) }
        }
        guard let bare else { return nil }
        let entry = head.withUnsafeBytes { head in
            CacheEntry(marks, attributes: attributes.encoded, head: head, body: result.body)
        }
        return KeptResponse(stored: StoredResponse(bare, marks, attributes), entry: entry)
    }

    private func refusal<R: Request>(
        of response: Response, _ rules: CacheRules, _ request: R, _ plan: CachePlan
    ) -> CacheRefusal? {
        let status = response.status
        if status == 206 || status == 304 { return .partial }
        if response.framing == .untilClose { return .untilClose }
        if rules.forbidsStoring { return .noStore }
        let asked = builder.sentValue(of: "Cache-Control", by: request, isForeign: plan.isForeign)
        if let asked, CacheRules.forbidsStoring(asked) { return .noStore }
        // What an adapter has added is not known when the answer is looked for.
        let added = response.trail?.added ?? []
        if rules.variesByAnything || rules.varying.contains(where: { name in added.contains { equalNames($0, name) } })
        {
            return .vary
        }
        if !plan.hasSensitiveData && hasUnknownCredentials(response) { return .unknownCredentials }
        if rules.isPersonal && !plan.isOwned { return .nobodysOwn }
        if response.bodyLength + Int(clamping: response.result.headBytesReceived) > cache?.maxEntryBytes ?? 0 {
            return .tooLarge
        }
        return request.shouldCache(response) ? nil : .request
    }

    private func hasUnknownCredentials(_ response: Response) -> Bool {
        if response.trail?.hasUnknownCredentials == true { return true }
        return hasCookies
    }

    /// Whether a jar may have something to send along.
    var hasCookies: Bool { configuration.keepsCookies && transport.hasCookies }
}
