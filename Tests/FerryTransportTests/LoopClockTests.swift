import FerrySynchronization
import FerryTransport
import Glibc
import Testing

/// The clock of an event loop, on the loop's thread.
@Suite(.timeLimit(.minutes(1))) struct LoopClockTests {
    /// The monotonic clock, in nanoseconds.
    private static func nanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// A counter for several threads.
    private final class Number: Sendable {
        let value = Atomic<UInt64>(0)
    }

    @Test func itRingsOnItsThreadNotBeforeItsTime() async throws {
        let transport = try Transport()
        let clock = try #require(transport.clocks.first)
        #expect(!clock.isCurrent)
        for wait: UInt64 in [0, 300_000, 5_000_000] {
            let (due, rung, isCurrent) = await withCheckedContinuation { continuation in
                let due = Number()
                clock.onTime {
                    clock.onTime(nil)
                    continuation.resume(
                        returning: (due.value.load(ordering: .acquiring), Self.nanoseconds(), clock.isCurrent))
                }
                Task(executorPreference: clock.executor) {
                    let time = Self.nanoseconds() + wait
                    due.value.store(time, ordering: .releasing)
                    clock.wake(at: time)
                }
            }
            #expect(isCurrent && rung >= due)
        }
        transport.shutdown()
    }

    /// The later setting counts, and 0 is never.
    @Test func theLastTimeSetCounts() async throws {
        let transport = try Transport()
        let clock = try #require(transport.clocks.first)
        let rings = Number()
        clock.onTime { rings.value.add(1, ordering: .relaxed) }
        await withTaskExecutorPreference(clock.executor) { () async in
            clock.wake(at: Self.nanoseconds() + 1_000_000)
            clock.wake(at: 0)
        }
        await withCheckedContinuation { continuation in
            Task(executorPreference: clock.executor) {
                clock.onTime {
                    rings.value.add(1, ordering: .relaxed)
                    clock.onTime(nil)
                    continuation.resume()
                }
                clock.wake(at: Self.nanoseconds() + 60_000_000_000)
                clock.wake(at: Self.nanoseconds() + 3_000_000)
            }
        }
        #expect(rings.value.load(ordering: .relaxed) == 1)
        transport.shutdown()
    }

    /// The rings that come, at most this many, within ten seconds. The loop is left alone meanwhile.
    private static func count(
        _ rings: AsyncStream<Void>, _ bell: AsyncStream<Void>.Continuation, upTo most: Int
    ) async -> Int {
        let watchdog = Task {
            try await Task.sleep(for: .seconds(10))
            bell.finish()
        }
        defer { watchdog.cancel() }
        var count = 0
        for await _ in rings {
            count += 1
            if count == most { break }
        }
        return count
    }

    @Test func theTimeThatHasRungRingsAgain() async throws {
        let transport = try Transport()
        let clock = try #require(transport.clocks.first)
        let (rings, bell) = AsyncStream.makeStream(of: Void.self)
        let due = Self.nanoseconds() + 10_000_000
        let isFirst = Atomic(true)
        clock.onTime {
            if isFirst.exchange(false, ordering: .relaxed) { clock.wake(at: due) }
            bell.yield()
        }
        await withTaskExecutorPreference(clock.executor) { () async in clock.wake(at: due) }
        let count = await Self.count(rings, bell, upTo: 2)
        #expect(count == 2)
        clock.onTime(nil)
        transport.shutdown()
    }

    /// The system's timer was set for it and fires, but there is nothing to ring for.
    @Test func theTimeThatWasCancelledRingsWhenItIsSetAgain() async throws {
        let transport = try Transport()
        let clock = try #require(transport.clocks.first)
        let (rings, bell) = AsyncStream.makeStream(of: Void.self)
        clock.onTime { bell.yield() }
        let due = Self.nanoseconds() + 100_000_000
        await withTaskExecutorPreference(clock.executor) { () async in clock.wake(at: due) }
        // The loop sets the timer when it is about to wait, which is after eight of its rounds at the latest.
        for _ in 0..<10 {
            await withTaskExecutorPreference(clock.executor) { () async in #expect(clock.isCurrent) }
        }
        await withTaskExecutorPreference(clock.executor) { () async in clock.wake(at: 0) }
        // Nothing shows that the system's timer has fired.
        try await Task.sleep(for: .milliseconds(120))
        await withTaskExecutorPreference(clock.executor) { () async in clock.wake(at: due) }
        let count = await Self.count(rings, bell, upTo: 1)
        #expect(count == 1)
        clock.onTime(nil)
        transport.shutdown()
    }

    @Test func eachLoopHasAClockOfItsOwn() async throws {
        var configuration = TransportConfiguration()
        configuration.eventLoopCount = 3
        let transport = try Transport(configuration)
        #expect(Set(transport.clocks.map(ObjectIdentifier.init)).count == 3)
        for (index, clock) in transport.clocks.enumerated() {
            let current = await withTaskExecutorPreference(clock.executor) { () async in
                transport.clocks.map(\.isCurrent)
            }
            #expect(current == (0..<3).map { $0 == index })
        }
        transport.shutdown()
    }
}
