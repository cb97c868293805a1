import FaultTable
import FerryCacheProbe
import FerryMeasurement
import FoundationEssentials
import Glibc
import Testing

@testable import FerryCache

/// Tests with several processes.
@Suite(.faultTable) struct ProcessTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    @Test("R100: a process killed while it writes leaves whole entries", .timeLimit(.minutes(5)))
    func aProcessKilledInTheMiddleOfWritingLeavesWholeEntries() async throws {
        var found = 0
        for round in 0..<LongTests.count(200, share: 50) {
            let probe = try ChildProcess([probeProgram, "write", folder.store])
            let pid = try #require(probe.readLine().flatMap { pid_t($0) })
            // Some are killed while they open the database, some in a transaction, some while they clean up the log.
            // On a machine so slow that none has committed by then, they get more time.
            usleep(UInt32((round * 7919) % 16_000) * UInt32(found > 0 ? 1 : 1 + round / 5))
            kill(pid, SIGKILL)
            #expect(probe.finish().code == -SIGKILL)
            let store = SQLiteCacheStore(folder.options())
            for number in 0...64 {
                switch await store.read(Sample.key(number)) {
                case .found(let entry):
                    found += 1
                    #expect(Sample.generation(of: entry, number) != nil, "round \(round), key \(number)")
                case .missing(let reason): #expect(reason == .notFound, "round \(round), key \(number)")
                }
            }
            #expect(store.counts.corrupt == 0)
            await store.close()
        }
        // How many depends on the progress of the processes; none at all would show nothing.
        #expect(found > 0)
        // No other files are left: the log is removed with the last connection.
        #expect(try folder.files().filter { !$0.hasPrefix("entries-1.sqlite.aside") } == ["entries-1.sqlite", "lock"])
    }

    @Test("R101: two processes of eight tasks read whole entries only", .timeLimit(.minutes(5)))
    func twoProcessesOfEightTasksReadWholeEntriesOnly() throws {
        let seconds = LongTests.count(60, share: 10)
        // They never rest: with the lowest priority, they take the CPU time that other tests leave.
        let probes = try (0..<2).map { _ in
            try ChildProcess(["nice", "-n", "19", probeProgram, "mix", folder.store, "\(seconds)", "8"])
        }
        for probe in probes {
            let end = probe.finish()
            #expect(end.code == 0)
            let numbers = end.output.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
            try #require(numbers.count == 5, "\(end.output)")
            #expect(numbers[0] > 100)
            #expect(numbers[2] == 0)
            #expect(numbers[3] == 0)
            #expect(numbers[4] > 0)
        }
    }

    @Test("R101: processes that start and end do not remove the log of a running one", .timeLimit(.minutes(5)))
    func processesThatComeAndGoLeaveALivingOneItsLog() async throws {
        let store = SQLiteCacheStore(folder.options())
        // A connection that writes, then one that reads.
        await store.write(Sample.entry(1000, generation: 1), under: Sample.key(1000))
        #expect(await store.read(Sample.key(1000)).entry != nil)
        let log = open(folder.database + "-wal", O_RDONLY | O_CLOEXEC)
        try #require(log >= 0)
        defer { close(log) }
        for round in 1...20 {
            // The last one to close a database cleans up its log: this one is not the last.
            let end = try ChildProcess([probeProgram, "use", folder.store]).finish()
            #expect(end.output.hasPrefix("hits=48 wrong=0 failed=0 disabled=false"), "\(end.output)")
            var status = stat()
            #expect(fstat(log, &status) == 0 && status.st_nlink == 1, "round \(round): the log is gone")
            #expect(await store.write(Sample.entry(1000 + round, generation: 1), under: Sample.key(1000 + round)))
            let found = try ChildProcess([probeProgram, "find", folder.store, "1000", "\(1001 + round)"]).finish()
            #expect(found.output == "found=\(round + 1) putAside=0 corrupt=0\n", "round \(round)")
        }
        #expect(store.counts.putAside == 0 && store.counts.faults.isEmpty)
        await store.close()
    }

    @Test(
        "R102: a full disk is a miss, and is left alone for a while",
        .enabled(if: Self.mayMount, "this process may not mount file systems"))
    func aFullDiskIsAMissAndIsLeftAlone() throws {
        try FileManager.default.createDirectory(atPath: folder.store, withIntermediateDirectories: true)
        let script = #"mount -t tmpfs -o size=64k,mode=700 tmpfs "$1" && exec "$0" use "$1""#
        let end = try ChildProcess(["unshare", "-m", "/bin/sh", "-c", script, probeProgram, folder.store]).finish()
        #expect(end.code == 0)
        #expect(end.output.contains("wrong=0"), "\(end.output)")
        #expect(end.output.contains("disabled=true"), "\(end.output)")
        #expect(end.output.contains("noSpace="), "\(end.output)")
    }

    @Test(.enabled(if: getuid() == 0, "only root can become somebody else"))
    func aDirectoryOfSomebodyElseIsAMissAndIsLeftAlone() throws {
        try FileManager.default.createDirectory(atPath: folder.path + "/a", withIntermediateDirectories: true)
        chmod(folder.path + "/a", 0o700)
        let end = try ChildProcess([probeProgram, "--as-nobody", "use", folder.store]).finish()
        #expect(end.code == 0)
        #expect(end.output.hasPrefix("hits=0 wrong=0 failed=48 disabled=true noPermission=2"), "\(end.output)")
    }

    @Test(.enabled(if: getuid() == 0, "only root can become somebody else"))
    func aDatabaseThatMayNotBeWrittenIsAMiss() async throws {
        let store = SQLiteCacheStore(folder.options())
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        await store.close()
        chmod(folder.path + "/a", 0o755)
        chmod(folder.store, 0o555)
        let end = try ChildProcess([probeProgram, "--as-nobody", "use", folder.store]).finish()
        #expect(end.code == 0)
        #expect(end.output.hasPrefix("hits=0 wrong=0 failed=48 disabled=true noPermission=2"), "\(end.output)")
    }

    @Test(
        "A directory, database or log of another user is not used",
        .enabled(if: getuid() == 0, "only root can do this"),
        arguments: ["", "/entries-1.sqlite", "/entries-1.sqlite-wal"])
    func filesOfAnotherUserAreNotUsed(name: String) async throws {
        let store = SQLiteCacheStore(folder.options())
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        await store.close()
        let path = folder.store + name
        if access(path, F_OK) != 0 { try folder.write([], to: path) }
        try #require(chown(path, 65534, 65534) == 0)
        let next = SQLiteCacheStore(folder.options())
        #expect(await next.read(Sample.key(1)).reason == .unavailable)
        #expect(await next.write(Sample.entry(2, generation: 1), under: Sample.key(2)) == false)
        #expect(next.counts.faults == [.noPermission: 2] && next.counts.isDisabled)
        #expect(next.counts.putAside == 0)
        await next.close()
    }

    @Test(
        "A directory that others may write to becomes the owner's, unless it is sticky",
        arguments: [0o777, 0o2777, 0o1777])
    func aDirectoryThatOthersMayWriteTo(mode: mode_t) async throws {
        try FileManager.default.createDirectory(atPath: folder.store, withIntermediateDirectories: true)
        try #require(chmod(folder.store, mode) == 0)
        let store = SQLiteCacheStore(folder.options())
        let isWritten = await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        #expect(isWritten == (mode & S_ISVTX == 0))
        #expect(store.counts.faults == (isWritten ? [:] : [.noPermission: 1]))
        #expect(try folder.mode(folder.store) == Int(isWritten ? mode & ~0o022 : mode))
        await store.close()
    }

    /// Whether a mount in a separate namespace is allowed here.
    private static let mayMount: Bool = {
        guard findProgram("unshare") != nil else { return false }
        let probe = try? ChildProcess(["unshare", "-m", "/bin/sh", "-c", "mount -t tmpfs tmpfs /mnt 2>/dev/null"])
        return probe?.finish().code == 0
    }()
}
