import Synchronization

extension BatchRun: AnswerReading {
    typealias Work = BatchWorkQueue.Work

    /// A task group looks for each child that ends among all others, so many errands are children of several groups.
    private static var errandsOfGroup: Int { 128 }

    /// One hand, until all is done and its errands have ended.
    nonisolated(nonsending) func work(from first: Work? = nil, groups: Int = 1) async {
        await withDiscardingTaskGroup { children in
            var next = first
            if next == nil { next = await self.next(after: nil) }
            while let work = next {
                if errands.load(ordering: .relaxed) >= Self.errandsOfGroup * groups {
                    return await self.work(from: work, groups: groups + 1)
                }
                perform(work, &children)
                next = await self.next(after: work)
            }
        }
    }

    private func perform(_ work: Work, _ children: inout DiscardingTaskGroup) {
        switch work {
        case .begin(let index): begin(index, &children)
        case .settle(let index, let transfer, let answer): settle(index, transfer, answer, &children)
        case .take(let index, let made): ended(index, made)
        }
    }

    // MARK: What there is to do

    private nonisolated(nonsending) func next(after last: Work?) async -> Work? {
        switch state.withLock({ $0.next(after: last) }) {
        case .work(let work): return work
        case .leave: return nil
        case .rest: break
        }
        #if FERRY_TSAN
        // The sanitizer does not see that who resumes a continuation comes before who was resumed.
        defer { state.withLock { _ in } }
        #endif
        return await withUnsafeContinuation { hand in
            let next = state.withLock { state in
                let next = state.next(after: nil)
                if case .rest = next { state.work.rest(hand) }
                return next
            }
            switch next {
            case .work(let work): hand.resume(returning: work)
            case .leave: hand.resume(returning: nil)
            case .rest: break
            }
        }
    }

    private func post(_ work: Work) {
        state.withLock { $0.work.push(work) }?.resume(returning: work)
    }

    /// [the loop's thread, or a hand's that begins it]
    func answered(_ index: Int, _ answer: Answer) {
        let (hand, work): (BatchWorkQueue.Hand?, Work?) = state.withLock { state in
            switch state.members[index] {
            case .beginning:
                state.members[index] = .answered(answer)
                return (nil, nil)
            case .transfer(let transfer):
                let work = Work.settle(index, transfer, answer)
                return (state.work.push(work), work)
            case .waiting, .answered, .errand, .ended: preconditionFailure("a member was answered that is no transfer")
            }
        }
        hand?.resume(returning: work)
    }

    // MARK: How it is done

    private func begin(_ index: Int, _ children: inout DiscardingTaskGroup) {
        let member = member(index)
        if case .request(let request) = member.content, request.isTransfer(for: core) {
            begin(index, request, &children)
        } else {
            send(index, &children) { [self] in
                if let task = RunningTask() { note(.task(task), of: index) }
                return await Result { () async throws(RequestError) in try await member.run(core, in: group) }
            }
        }
    }

    private func begin(_ index: Int, _ request: MemberRequest, _ children: inout DiscardingTaskGroup) {
        let run = request.begin(by: core, in: group, answering: AnswerReader(object: self, place: index))
        let transfer = BatchMember.Transfer(request: request, run: run)
        let (answer, isUnwanted): (Answer?, Bool) = state.withLock { state in
            let before = state.members[index]
            state.members[index] = .transfer(transfer)
            if case .answered(let answer) = before { return (answer, false) }
            return (nil, state.isEnding)
        }
        if let answer {
            settle(index, transfer, answer, &children)
        } else if isUnwanted {
            BatchMember.transfer(transfer).end(by: core, in: group)
        }
    }

    private func settle(
        _ index: Int, _ transfer: BatchMember.Transfer, _ answer: Answer, _ children: inout DiscardingTaskGroup
    ) {
        if transfer.request.isSettled(answer, by: core) {
            ended(index, transfer.conclude(answer, by: core))
            return
        }
        let journey = core.journey(of: transfer.run)
        note(.journey(journey), of: index)
        send(index, &children) { [core] in
            let last = await transfer.request.goOn(transfer.run, journey, after: answer, by: core)
            return transfer.conclude(last, by: core)
        }
    }

    /// Sends a task on an errand; what it brings comes to a hand again.
    private func send(
        _ index: Int, _ children: inout DiscardingTaskGroup,
        on errand: @escaping @Sendable () async -> Result<Made, RequestError>
    ) {
        errands.add(1, ordering: .relaxed)
        children.addImmediateTask { [self] in
            let made = await errand()
            errands.subtract(1, ordering: .relaxed)
            post(.take(index, made))
        }
    }

    private func note(_ errand: BatchMember.Errand, of index: Int) {
        let isUnwanted = state.withLock { state in
            state.members[index] = .errand(errand)
            return state.isEnding
        }
        if isUnwanted { BatchMember.errand(errand).end(by: core, in: group) }
    }

    // MARK: How it ends

    private func ended(_ index: Int, _ made: Result<Made, RequestError>) {
        let (action, progress, hands) = state.withLock { state in
            let action = state.ended(index, made, isGroupEnding: group.ending != nil)
            return (action, state.progress, state.freeHands())
        }
        group.advance(to: progress)
        if action == .stop { endMembers() }
        for hand in hands { hand.resume(returning: nil) }
    }

    /// Ends it from outside. Any thread.
    func interrupt() {
        let hands = state.withLock { state in
            state.interrupt()
            return state.freeHands()
        }
        endMembers()
        for hand in hands { hand.resume(returning: nil) }
    }

    /// Ends what runs, once.
    private func endMembers() {
        let members = state.withLock { state in
            defer { state.isEnding = true }
            return state.isEnding ? [] : state.members
        }
        for member in members { member.end(by: core, in: group) }
    }
}

extension Result where Success == Made, Failure == RequestError {
    fileprivate nonisolated(nonsending) init(_ work: () async throws(RequestError) -> Made) async {
        do throws(RequestError) {
            self = .success(try await work())
        } catch {
            self = .failure(error)
        }
    }
}

extension BatchMember.Transfer {
    fileprivate func conclude(_ answer: Answer, by core: AgentCore) -> Result<Made, RequestError> {
        Result { () throws(RequestError) in try request.conclude(answer, of: run, by: core) }
    }
}
