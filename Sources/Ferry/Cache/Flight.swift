import FerryTransport
import Synchronization

/// A transfer that several runs share.
final class Flight: Sendable {
    private struct State {
        var waiters: [Int: @Sendable (Answer) -> Void] = [:]
        var next = 0
        var answer: Answer?
    }

    let journey: Journey
    private let state = Mutex(State())

    init(_ journey: Journey) { self.journey = journey }

    /// One more that waits. Its number, by which it leaves.
    fileprivate func board() -> Int {
        state.withLock { state in
            state.next += 1
            state.waiters[state.next] = { _ in }
            return state.next
        }
    }

    /// Calls back once, when the answer is there, or now.
    func wait(_ number: Int, _ done: @escaping @Sendable (Answer) -> Void) {
        let answer = state.withLock { state in
            if state.answer == nil { state.waiters[number] = done }
            return state.answer
        }
        if let answer { done(answer) }
    }

    func land(_ answer: Answer) {
        let waiters = state.withLock { state in
            state.answer = answer
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter(answer) }
    }

    /// Whether nobody waits any more for an answer that is not there.
    fileprivate func leave(_ number: Int) -> Bool {
        state.withLock { state in
            guard state.answer == nil, state.waiters.removeValue(forKey: number) != nil else { return false }
            return state.waiters.isEmpty
        }
    }
}

/// The shared transfers under way.
final class FlightTable: Sendable {
    private let flights = Mutex([FlightKey: Flight]())

    /// The flight under way for a key, or a new one, and the number of who boards it.
    func board(_ key: FlightKey, else make: () -> Flight) -> (flight: Flight, number: Int, isNew: Bool) {
        let made = make()
        return flights.withLock { flights in
            let found = flights[key]
            let flight = found ?? made
            flights[key] = flight
            // Under the lock, so that nobody takes it for abandoned meanwhile.
            return (flight, flight.board(), found == nil)
        }
    }

    func land(_ flight: Flight, _ key: FlightKey, _ answer: Answer) {
        remove(flight, key)
        flight.land(answer)
    }

    /// Somebody does not want the answer any more; the last of them ends the flight, and who comes later begins
    /// another.
    func leave(_ flight: Flight, _ key: FlightKey, _ number: Int) {
        let isAbandoned = flights.withLock { flights in
            guard flight.leave(number) else { return false }
            if flights[key] === flight { flights[key] = nil }
            return true
        }
        if isAbandoned { flight.journey.end(.cancelled) }
    }

    private func remove(_ flight: Flight, _ key: FlightKey) {
        flights.withLock { if $0[key] === flight { $0[key] = nil } }
    }
}

/// What runs must have in common to share a transfer: all that is sent, and how the answer is to be taken.
struct FlightKey: Hashable {
    let type: ObjectIdentifier
    let material: [UInt8]
}
