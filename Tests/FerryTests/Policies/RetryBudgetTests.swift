import Dispatch
import FerrySynchronization
import Testing

@testable import Ferry

@Suite struct RetryBudgetTests {
    private final class Clock: Sendable {
        let nanoseconds = Atomic<UInt64>(1_000_000_000)
        func advance(_ seconds: Double) {
            nanoseconds.add(UInt64(seconds * 1e9), ordering: .relaxed)
        }
    }

    private let clock = Clock()

    private func accounts(_ budget: RetryBudget, hosts: Int = 1024) -> RetryAccounts {
        RetryAccounts(budget, hosts: hosts) { [clock] in clock.nanoseconds.load(ordering: .relaxed) }
    }

    private func drain(_ accounts: RetryAccounts, _ host: String = "h", most: Int = 100_000) -> Int {
        var taken = 0
        while taken < most, accounts.withdraw(host) { taken += 1 }
        return taken
    }

    @Test func accountBeginsFull() {
        let accounts = accounts(RetryBudget())
        #expect(drain(accounts) == 100)
        #expect(drain(accounts) == 0)
    }

    @Test func everyFifthRequestPaysForARetry() {
        let accounts = accounts(RetryBudget())
        _ = drain(accounts)
        for _ in 0..<50 { accounts.deposit("h") }
        #expect(drain(accounts) == 10)
    }

    @Test func timePaysToo() {
        let accounts = accounts(RetryBudget())
        _ = drain(accounts)
        clock.advance(0.05)
        #expect(drain(accounts) == 0)
        clock.advance(0.05)
        #expect(drain(accounts) == 1)
        clock.advance(2)
        #expect(drain(accounts) == 20)
    }

    @Test func accountHoldsNoMoreThanItsBurst() {
        let accounts = accounts(RetryBudget(burst: 5))
        clock.advance(3600)
        for _ in 0..<1000 { accounts.deposit("h") }
        #expect(drain(accounts) == 5)
    }

    @Test func hostsHaveAccountsOfTheirOwn() {
        let accounts = accounts(RetryBudget())
        _ = drain(accounts, "h")
        #expect(accounts.withdraw("g"))
        #expect(!accounts.withdraw("h"))
    }

    @Test(arguments: [
        RetryBudget(ratio: 0, minimumPerSecond: 0, burst: 0), RetryBudget(ratio: -1, minimumPerSecond: -1, burst: -1),
        RetryBudget(ratio: 1, minimumPerSecond: 100, burst: 0.5),
    ])
    func budgetOfNothingAllowsNothing(_ budget: RetryBudget) {
        let accounts = accounts(budget)
        accounts.deposit("h")
        clock.advance(10)
        #expect(!accounts.withdraw("h"))
    }

    @Test func clockThatGoesBackPaysNothing() {
        var account = RetryAccount(RetryBudget(burst: 1), now: 10_000_000_000)
        let taken = [10, 5, 10].map { account.withdraw(RetryBudget(burst: 1), now: $0 * 1_000_000_000) }
        #expect(taken == [true, false, false])
    }

    @Test func hostsAreBounded() {
        let accounts = accounts(RetryBudget(), hosts: 100)
        _ = drain(accounts, "busy")
        for number in 0..<10_000 {
            accounts.deposit("host\(number)")
            #expect(!accounts.withdraw("busy"), "it was asked for all the time")
        }
        #expect(accounts.count <= 100)
    }

    @Test func accountsAreSafeFromManyThreads() {
        let accounts = accounts(RetryBudget(ratio: 1, minimumPerSecond: 0, burst: 1_000_000), hosts: 2)
        _ = drain(accounts, most: 1_000_000)
        let taken = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<1000 { accounts.deposit("h") }
            for _ in 0..<1000 where accounts.withdraw("h") { taken.add(1, ordering: .relaxed) }
        }
        #expect(taken.load(ordering: .relaxed) + drain(accounts, most: 10_000) == 8000)
    }
}
