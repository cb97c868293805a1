import Synchronization

extension BatchRun: AnswerReading {
    typealias Work = BatchWorkQueue.Work

    /// One hand, until all is done.
    nonisolated(nonsending) func work() async {
        while let work = await next() {
            switch work {
            case .begin(let index): begin(index)
            case .settle(let index, let transfer, let answer): settle(index, transfer, answer)
            case .take(let index, let made): ended(index, made)
            }
        }
    }

    // MARK: What there is to do

    private nonisolated(nonsending) func next() async -> Work? {
        switch state.withLock({ $0.next() }) {
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
                let next = state.next()
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

    private func begin(_ index: Int) {
        let member = member(index)
        if case .request(let request) = member.content, request.isTransfer(for: core) {
            begin(index, request)
        } else {
            begin(index, member)
        }
    }

    private func begin(_ index: Int, _ request: MemberRequest) {
        let run = request.begin(by: core, in: group, answering: AnswerReader(object: self, place: index))
        let transfer = BatchMember.Transfer(request: request, run: run)
        let (answer, isUnwanted): (Answer?, Bool) = state.withLock { state in
            let before = state.members[index]
            state.members[index] = .transfer(transfer)
            if case .answered(let answer) = before { return (answer, false) }
            return (nil, state.isEnding)
        }
        if let answer {
            settle(index, transfer, answer)
        } else if isUnwanted {
            BatchMember.transfer(transfer).end(by: core, in: group)
        }
    }

    private func begin(_ index: Int, _ member: Member) {
        let task = Task.immediate(executorPreference: preferredExecutor()) { [self] in
            let made: Result<Made, RequestError>
            do throws(RequestError) {
                made = .success(try await member.run(core, in: group))
            } catch {
                made = .failure(error)
            }
            post(.take(index, made))
        }
        note(.task(task), of: index)
    }

    private func settle(_ index: Int, _ transfer: BatchMember.Transfer, _ answer: Answer) {
        if transfer.request.isSettled(answer, by: core) {
            ended(index, transfer.conclude(answer, by: core))
            return
        }
        let journey = core.journey(of: transfer.run)
        note(.journey(journey), of: index)
        Task.immediate(executorPreference: preferredExecutor()) { [self] in
            let last = await transfer.request.goOn(transfer.run, journey, after: answer, by: core)
            post(.take(index, transfer.conclude(last, by: core)))
        }
    }

    private func note(_ errand: BatchMember.Errand, of index: Int) {
        let isUnwanted = state.withLock { state in
            // A task that had nothing to wait for has brought its result already.
            if case .ended = state.members[index] { return false }
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

extension BatchMember.Transfer {
    fileprivate func conclude(_ answer: Answer, by core: AgentCore) -> Result<Made, RequestError> {
        Result { () throws(RequestError) in try request.conclude(answer, of: run, by: core) }
    }
}
