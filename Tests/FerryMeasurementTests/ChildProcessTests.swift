import FerryMeasurement
import Glibc
import Testing

@Suite struct ChildProcessTests {
    @Test func outputCodeAndUsageCome() throws {
        let script = "echo first; echo $GREETING; exit 7"
        let process = try ChildProcess(["sh", "-c", script], environment: ["GREETING": "hi"])
        #expect(process.readLine() == "first")
        let end = process.finish()
        #expect(end.output == "hi\n")
        #expect(end.code == 7)
        #expect(end.usage.user + end.usage.system > 0)
    }

    @Test func aSignalIsNegative() throws {
        #expect(try ChildProcess(["sh", "-c", "kill -9 $$"]).finish().code == -9)
    }

    @Test func stoppingEndsIt() throws {
        let process = try ChildProcess(["sh", "-c", "echo $$; exec sleep 1000"])
        let pid = try #require(process.readLine().flatMap(pid_t.init))
        #expect(kill(pid, 0) == 0)
        process.stop()
        #expect(kill(pid, 0) == -1 && errno == ESRCH)
        process.stop()
    }

    @Test func anUnknownProgramIsAnError() {
        #expect(throws: ChildProcess.Failure.self) { try ChildProcess(["/nonexistent/program"]) }
    }
}

@Suite struct NumberTextTests {
    @Test func numbersAreReadable() {
        #expect(fixed(3.14159, 2) == "3.14")
        #expect(fixed(2, 0) == "2")
        #expect(grouped(0) == "0")
        #expect(grouped(999) == "999")
        #expect(grouped(1000) == "1,000")
        #expect(grouped(1_234_567) == "1,234,567")
        #expect(durationText(nanoseconds: 870_000) == "870 µs")
        #expect(durationText(nanoseconds: 12_400_000) == "12.4 ms")
        #expect(durationText(nanoseconds: 1_250_000_000) == "1.25 s")
    }
}
