import Ferry
import FerryMeasurement
import Testing

@testable import FerryCommand

func benchPlan(_ line: String...) throws -> BenchPlan {
    try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))
}

@Suite struct BenchPlanTests {
    @Test func tenSecondsOfTheClosedModelAreTheDefault() throws {
        let plan = try benchPlan("http://h/")
        #expect(plan.duration == .seconds(10) && plan.requests == nil && plan.warmUp == .zero)
        #expect(plan.model == .closed(concurrency: 64) && plan.connections == 64)
        #expect(plan.bodies == .likeFirst)
    }

    @Test func aCountTakesThePlaceOfTheTime() throws {
        let plan = try benchPlan("-n", "5", "-c", "2", "--loops", "3")
        #expect(plan.connections == 2)
        #expect(plan.requests == 5 && plan.duration == nil && plan.concurrency == 2)
        #expect(!plan.order.hasServer && plan.order.configuration.eventLoopCount == 3)
    }

    @Test func aRateMakesItTheOpenModelWithMoreConnections() throws {
        let plan = try benchPlan("-r", "0.5", "-z", "4", "-w", "1.5")
        #expect(plan.model == .open(rate: 0.5) && plan.model.title == "open, 0.5 per second")
        #expect(plan.connections == 1000 && plan.order.configuration.limits.transfersPerHost == 1000)
        #expect(plan.warmUp == .milliseconds(1500))
        #expect(try benchPlan("-r", "50", "--connections", "7").connections == 7)
    }

    @Test func connectionsAreAsManyAsAreAtOnce() throws {
        #expect(try benchPlan("-c", "256").order.configuration.limits.transfersPerHost == 256)
        #expect(BenchPlan.usualConnections(.closed(concurrency: 50_000), descriptors: .max) == 10_000)
        #expect(BenchPlan.usualConnections(.closed(concurrency: 5000), descriptors: 1024) == 924)
        #expect(BenchPlan.usualConnections(.closed(concurrency: 5), descriptors: 20) == 1)
        #expect(BenchPlan.usualConnections(.open(rate: 1), descriptors: .max) == 1000)
    }

    @Test func whereSomeWaitTheTitleSaysSo() throws {
        #expect(try benchPlan("-c", "256").title == "closed, 256 at once")
        #expect(
            try benchPlan("-c", "256", "--connections", "8").title
                == "closed, 256 at once, at most 8 of them in progress")
        #expect(try benchPlan("-c", "256", "--http2").title == "closed, 256 at once, at most 100 of them in progress")
        #expect(try benchPlan("-c", "256", "--http2", "--loops", "3").title == "closed, 256 at once")
        #expect(
            try benchPlan("-c", "5000", "--connections", "1000").title
                == "closed, 5,000 at once, at most 1,000 of them in progress")
        #expect(try benchPlan("-r", "5", "--connections", "8").title == "open, 5 per second")
    }

    @Test func redirectsAndCompressionMayBeLeftOut() throws {
        let usual = try benchPlan("http://h/").order.configuration
        #expect(usual.redirectPolicy.limit == 10 && !usual.acceptedEncodings.isEmpty)
        let plain = try benchPlan("http://h/", "--max-redirects", "0", "--no-compressed").order.configuration
        #expect(plain.redirectPolicy.limit == nil && plain.acceptedEncodings.isEmpty)
    }

    @Test func theRequestIsTheCommandLines() throws {
        let request = try benchPlan("http://h/a", "-d", "x", "-H", "A: b", "-u", "kim:pw", "-m", "2").order.request
        #expect(request.path == "http://h/a" && request.method == .post && request.headers["A"] == "b")
        #expect(request.body != nil && request.authorization != nil && request.timeouts?.total == .seconds(2))
        #expect(try benchPlan("http://h/", "-X", "PURGE").order.request.method.rawValue == "PURGE")
        let status = try benchPlan("http://h/", "--status", "404").order.request.statusValidation
        #expect(status?.accepts(404) == true && status?.accepts(200) == false)
    }

    @Test func jsonGoesToTheOutputOrToAFile() throws {
        #expect(try benchPlan("--json").output.printsJSON)
        let file = try TemporaryFile([])
        let output = try benchPlan("--json=\(file.path)", "http://h/").output
        #expect(!output.printsJSON && output.jsonFile == file.path)
        #expect(throws: InputError.self) { try benchPlan("--json=/nowhere/at/all.json") }
        for option in ["--json", "--html"] {
            #expect(throws: InputError("cannot write /tmp: Is a directory")) { try benchPlan("\(option)=/tmp") }
        }
    }

    @Test(arguments: [
        ["-n", "0"], ["-z", "0"], ["-n", "1", "-z", "1"], ["-c", "0"], ["--loops", "0"], ["a", "b"], ["-r", "0"],
        ["-r", "1", "-c", "1"], ["-r", "fast"], ["-w", "-1"], ["--expect-sha256", "abc"],
        ["--expect-sha256", String(repeating: "０", count: 21) + "0"],
        ["--any-body", "--expect-sha256", String(repeating: "a", count: 64)], ["-d", "x", "--json-body", "1"],
    ])
    func nonsenseIsAUsageError(line: [String]) {
        #expect(throws: UsageError.self) { try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions)) }
    }

    @Test func theHelpNamesEveryOption() {
        for option in BenchCommand.allOptions { #expect(BenchCommand.help.contains("--\(option.name)")) }
        #expect(Set(BenchCommand.allOptions.map(\.name)).count == BenchCommand.allOptions.count)
        let letters = BenchCommand.allOptions.compactMap(\.letter)
        #expect(Set(letters).count == letters.count)
    }
}

@Suite struct BenchTicketTests {
    @Test func ticketsEndWithTheCount() {
        let tickets = BenchTickets(start: monotonicNanoseconds(), requests: 2, duration: nil)
        #expect(tickets.take() && tickets.take())
        #expect(!tickets.take() && !tickets.take())
    }

    @Test func ticketsEndWithTheTime() {
        let now = monotonicNanoseconds()
        #expect(BenchTickets(start: now, requests: nil, duration: .seconds(3600)).take())
        #expect(!BenchTickets(start: now - 1_000_000_001, requests: nil, duration: .seconds(1)).take())
    }
}

@Suite struct ArrivalScheduleTests {
    @Test func arrivalsAreAtEvenDistances() {
        let schedule = ArrivalSchedule(start: 1_000, rate: 1000, count: 3)
        #expect((0..<3).map(schedule.time) == [1_000, 1_001_000, 2_001_000])
        #expect([0, 999, 1_000, 1_000_999, 1_001_000, 2_001_000, .max / 2].map(schedule.due) == [0, 0, 1, 1, 2, 3, 3])
    }

    /// The client would wake up for each of them.
    @Test(arguments: [(1400.0, 1), (1600, 2), (3000, 3), (20_000, 20)])
    func aboveAThousandASecondSeveralAreDueAtOnce(rate: Double, group: Int) {
        let schedule = ArrivalSchedule(start: 50, rate: rate, count: 1000)
        let times = (0..<1000).map(schedule.time)
        for number in 0..<1000 { #expect(times[number] == times[number / group * group]) }
        let distance = Double(times[group] - times[0])
        #expect(abs(distance - Double(group) * 1e9 / rate) <= 1 && distance < 1_300_000)
        #expect(schedule.due(at: 50) == group && schedule.due(at: 49) == 0 && schedule.due(at: times[999]) == 1000)
    }

    @Test func whatIsLateDoesNotDelayTheRest() {
        // A third of a nanosecond is lost in each, but it does not accumulate.
        let schedule = ArrivalSchedule(start: 0, rate: 3, count: 3_000_001)
        #expect(schedule.time(of: 3_000_000) == 1_000_000_000_000_000)
    }

    @Test(arguments: [0.3, 7, 999.9, 12_345, 3_000_000])
    func nothingIsDueBeforeItsTimeAndEverythingAtIt(rate: Double) {
        let schedule = ArrivalSchedule(start: 77, rate: rate, count: 500)
        for number in 0..<500 {
            let time = schedule.time(of: number)
            #expect(schedule.due(at: time) >= number + 1)
            if time > 77 { #expect(schedule.due(at: time - 1) <= number) }
        }
    }

    @Test func whatIsDueAfterTheEndOfTheClockNeverIs() async {
        let schedule = ArrivalSchedule(start: 5, rate: 1e-11, count: 2)
        #expect(schedule.time(of: 0) == 5 && schedule.time(of: 1) == .max && schedule.due(at: .max / 2) == 1)
        #expect(await Main.run(["bench", "http://127.0.0.1:1/", "-n", "2", "-r", "1e-11"]) == .usage)
    }

    @Test func aTimeHoldsAllThatAreDueInIt() {
        #expect(ArrivalSchedule(start: 0, rate: 100, duration: .seconds(2)).count == 200)
        #expect(ArrivalSchedule(start: 0, rate: 0.1, duration: .seconds(1)).count == 1)
    }
}
