import FerrySynchronization
import FerryTransport

/// The active runs by id: a slab whose slots have a generation, so that no id is used twice and a late id finds
/// nothing.
struct RecordTable<Record> {
    private struct Place {
        var generation: UInt32 = 1
        /// For a free slot, the index of the next free slot + 1, or 0. For a used one, whether its run has its result.
        var next: UInt32 = 0
        var record: Record?
    }

    private var places: [Place] = []
    /// The index of the first free slot + 1, or 0.
    private var free: UInt32 = 0
    /// The number of runs without a result.
    private(set) var count = 0

    /// The id, from the top: 8 bits for the event loop, 24 for the generation, 32 for the index. It is never below 2³².
    mutating func insert(_ record: Record, loop: UInt8 = 0) -> TransferID {
        count += 1
        let index: Int
        if free == 0 {
            index = places.count
            places.append(Place(record: record))
        } else {
            index = Int(free - 1)
            free = places[index].next
            places[index].next = 0
            places[index].record = record
        }
        return TransferID(loop) << 56 | TransferID(places[index].generation) << 32 | TransferID(index)
    }

    /// Inserts the record of a run that already has its result.
    mutating func insertAnswered(_ record: Record) -> TransferID {
        let id = insert(record)
        places[Int(id & 0xFFFF_FFFF)].next = Self.answered
        count -= 1
        return id
    }

    /// Returns the record of a run that now has its result, once. The run no longer counts. It loses its slot, or keeps
    /// it until it is removed.
    mutating func answer(_ id: TransferID, keepsPlace: (Record) -> Bool) -> Record? {
        guard let index = index(of: id), places[index].next != Self.answered,
            let record = places[index].record.take()
        else { return nil }
        count -= 1
        if keepsPlace(record) {
            places[index].record = record
            places[index].next = Self.answered
        } else {
            release(index)
        }
        return record
    }

    private static var lastGeneration: UInt32 { 0xFF_FFFF }
    private static var answered: UInt32 { .max }

    private static func generation(of id: TransferID) -> UInt32 {
        UInt32(truncatingIfNeeded: id >> 32) & lastGeneration
    }

    /// Removes a record, with or without a result.
    @discardableResult
    mutating func remove(_ id: TransferID) -> Record? {
        guard let index = index(of: id), let record = places[index].record.take() else { return nil }
        if places[index].next != Self.answered { count -= 1 }
        release(index)
        return record
    }

    private func index(of id: TransferID) -> Int? {
        let index = Int(id & 0xFFFF_FFFF)
        return index < places.count && places[index].generation == Self.generation(of: id) ? index : nil
    }

    private mutating func release(_ index: Int) {
        places[index].generation = places[index].generation == Self.lastGeneration ? 1 : places[index].generation + 1
        places[index].next = free
        free = UInt32(index + 1)
    }

    subscript(id: TransferID) -> Record? { index(of: id).flatMap { places[$0].record } }

    /// All records, including those of runs with a result. O(slots).
    var all: [Record] { places.compactMap(\.record) }
}

/// A log of `cancelAll` calls, for runs that had a response at the time but whose task was about to continue, so that
/// the call could not find them.
struct CancelLog {
    /// The numbers of the last calls with these tags.
    private var tags: [String: UInt32] = [:]
    /// The number of the last call without a tag.
    private var ofAll: UInt32 = 0
    /// The number of the last call; 0 if there was none.
    private(set) var number: UInt32 = 0

    /// There are never calls with more tags in the time that a task takes to continue.
    private static let most = 4_096
    /// This number is never reached.
    private static let last = UInt32.max

    /// Notes that all runs, or those with a tag, were cancelled.
    mutating func note(_ tag: String?) {
        if number < Self.last { number += 1 }
        guard let tag else { return ofAll = number }
        if tags.count >= Self.most && tags[tag] == nil {
            let middle = tags.values.sorted()[Self.most / 2]
            tags = tags.filter { $0.value > middle }
        }
        tags[tag] = number
    }

    /// Whether a run with this tag was cancelled after the call with that number.
    func covers(_ tag: String?, since earlier: UInt32) -> Bool {
        ofAll > earlier || tag.flatMap { tags[$0] } ?? 0 > earlier
    }
}

extension AgentCore {
    /// Admits a new run, or returns the reason for refusing it. From here on `cancelAll` and `shutdown` find the run.
    /// If it `waitsForApplication`, it has to go through the processing queue first, which code of the application may
    /// block.
    func admit(_ control: RunControl, url: String, waitsForApplication: Bool = false) -> RequestError? {
        state.withLock { state in
            if state.isClosed && !state.letsIn(control.group != nil || control.isRefresh) {
                return RequestError(TransferFailure(.shutdown), url: url)
            }
            // The runs that wait for a new token have been admitted, and end only with it.
            if state.table.count + state.resting >= maxRuns && !control.isRefresh {
                return .queueFull(limit: configuration.limits.queueLength, url: url)
            }
            state.enter(control, self)
            if waitsForApplication { state.waitingForApplication.insert(ObjectIdentifier(control)) }
            return nil
        }
    }

    /// The run waits for code of the application until it enters again.
    func waitsForApplication(_ control: RunControl) {
        state.withLock { state in
            if state.controls[ObjectIdentifier(control)] == nil { return IdleAction() }
            state.waitingForApplication.insert(ObjectIdentifier(control))
            return state.becameIdle()
        }.act()
    }

    /// A run has ended, or was never started.
    func leave(_ control: RunControl) {
        state.withLock { state in
            if !state.leave(control) { return IdleAction() }
            return state.becameIdle()
        }.act()
    }

    /// A run has its result and calls its hooks: a shutdown waits for them within the grace, but no longer.
    func delivers(_ control: RunControl) {
        state.withLock { state in
            _ = state.leave(control)
            state.undelivered += 1
            return state.becameIdle()
        }.act()
    }

    /// The hooks have returned.
    func delivered() {
        state.withLock { state in
            state.undelivered -= 1
            return state.becameIdle()
        }.act()
    }

    /// Registers a run that continues. If it continues from the plain transfer of `run`, it began when the counter of
    /// `cancelAll` calls had the run's number. Since its response arrived, `cancelAll` could not find it.
    func enter(_ control: RunControl, from run: Run? = nil) {
        let (isLate, isCancelled) = state.withLock { state in
            if state.controls[ObjectIdentifier(control)] == nil { state.enter(control, self) }
            state.waitingForApplication.remove(ObjectIdentifier(control))
            if let run { state.decided(run) }
            return (state.isOver, run?.lastCancel.map { state.cancels.covers(control.tag, since: $0) } ?? false)
        }
        if isCancelled { control.end(.cancelled) }
        // It continues from a plain transfer whose response had arrived when all runs were ended.
        if isLate { control.end(.shutdown) }
    }

    /// The task of a run has found its response to be the last.
    func settled(_ run: AwaitedRun) {
        if !run.isUndecided { return }
        state.withLock { state in
            state.decided(run)
            return state.becameIdle()
        }.act()
    }

    /// Registers a group until it ends, or returns the reason for refusing it.
    func enter(_ group: GroupRun) -> RequestError? {
        let isRefused = state.withLock { state in
            state.groups[ObjectIdentifier(group)] = group
            return state.isClosed && !state.letsIn(group.outer != nil || isRefreshing)
        }
        return isRefused ? RequestError(.shutdown) : nil
    }

    /// A group has ended, including its callbacks.
    func leave(_ group: GroupRun) {
        state.withLock { state in
            state.groups[ObjectIdentifier(group)] = nil
            return state.becameIdle()
        }.act()
    }

    /// Changes the priority of all waiting members of a group, unless they or a nested group around them have their
    /// own, and of the members that start later.
    func setPriority(_ priority: RequestPriority, of group: GroupRun) {
        group.setPriority(priority)
        let (runs, controls) = state.withLock { ($0.table.all, Array($0.controls.values)) }
        for run in runs where run.inherited?.hasPriority(of: group) == true && run.id != 0 {
            transport.setRing(priority.ring, of: run.id)
        }
        for control in controls where control.inherited?.hasPriority(of: group) == true {
            control.setPriority(priority, in: self)
        }
    }

    /// A transfer represents its run in the table from now on.
    func goes() { state.withLock { $0.resting -= 1 } }

    /// The transfer of a run has left the table: the run counts on its own again.
    func rests() { state.withLock { $0.resting += 1 } }
}

extension AgentCore.State {
    fileprivate mutating func enter(_ control: RunControl, _ core: AgentCore) {
        controls[ObjectIdentifier(control)] = control
        if !control.isShared { resting += 1 }
        hold(core)
    }

    /// Returns whether the run was there.
    fileprivate mutating func leave(_ control: RunControl) -> Bool {
        guard controls.removeValue(forKey: ObjectIdentifier(control)) != nil else { return false }
        waitingForApplication.remove(ObjectIdentifier(control))
        if !control.isShared { resting -= 1 }
        return true
    }

    /// The task of a run has decided about its response.
    fileprivate mutating func decided(_ run: Run) {
        if run.isUndecided { undecided -= 1 }
        run.isUndecided = false
    }
}
