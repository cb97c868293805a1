import FerryCache
import Glibc

/// A separate process for the tests of the cache: `FerryCacheProbe COMMAND DIRECTORY …`.
@main
struct Probe {
    static func main() async {
        var arguments = Array(CommandLine.arguments.dropFirst())
        // Gives up the rights of root.
        if arguments.first == "--as-nobody" {
            arguments.removeFirst()
            guard setgid(65534) == 0, setuid(65534) == 0 else { exit(3) }
        }
        guard arguments.count >= 2 else { exit(2) }
        let numbers = arguments.dropFirst(2).compactMap { Int($0) }
        var options = CacheStoreOptions(directory: arguments[1])
        options.gatheringTime = 0
        switch arguments[0] {
        case "write": await write(SQLiteCacheStore(options))
        case "mix": await mix(SQLiteCacheStore(options), seconds: numbers.first ?? 1, tasks: numbers.last ?? 1)
        case "use": await use(SQLiteCacheStore(options))
        case "find": await find(SQLiteCacheStore(options), keys: (numbers.first ?? 0)..<(numbers.last ?? 0))
        default: exit(2)
        }
    }

    /// Writes until it is killed.
    private static func write(_ store: SQLiteCacheStore) async {
        say("\(getpid())")
        var generation = UInt64(currentCacheTime())
        while true {
            generation += 1
            for number in 0..<64 {
                store.write(Sample.entry(number, generation: generation), under: Sample.key(number), nil)
            }
            // Sometimes another operation, so that it is killed in that, too.
            if generation % 7 == 0 { store.remove(Sample.key(Int(generation % 64)), nil) }
            await store.write(Sample.entry(64, generation: generation), under: Sample.key(64))
        }
    }

    /// Reads and writes one key with many tasks; prints how many reads were hits, misses and wrong.
    private static func mix(_ store: SQLiteCacheStore, seconds: Int, tasks: Int) async {
        let end = ContinuousClock.now + .seconds(seconds)
        let totals = await withTaskGroup(of: [Int].self) { group in
            for task in 0..<tasks {
                group.addTask {
                    var totals = [0, 0, 0]
                    var generation = UInt64(task) << 40
                    while ContinuousClock.now < end {
                        generation += 1
                        store.write(Sample.entry(0, generation: generation), under: Sample.key(0), nil)
                        for _ in 0..<4 {
                            switch await store.read(Sample.key(0)) {
                            case .found(let entry): totals[Sample.generation(of: entry, 0) == nil ? 2 : 0] += 1
                            case .missing: totals[1] += 1
                            }
                        }
                    }
                    return totals
                }
            }
            return await group.reduce([0, 0, 0]) { zip($0, $1).map { $0 + $1 } }
        }
        let counts = store.counts
        await store.close()
        say("\(totals[0]) \(totals[1]) \(totals[2]) \(counts.corrupt + counts.putAside) \(counts.written)")
        exit(totals[2] == 0 ? 0 : 1)
    }

    /// Writes and reads where that may be impossible; prints hits, wrong ones, and the faults by kind.
    private static func use(_ store: SQLiteCacheStore) async {
        var hits = 0
        var wrong = 0
        for number in 0..<48 {
            await store.write(Sample.entry(number, generation: 1, count: 4000), under: Sample.key(number))
            guard let entry = await store.read(Sample.key(number)).entry else { continue }
            if Sample.generation(of: entry, number) == 1 { hits += 1 } else { wrong += 1 }
        }
        let counts = store.counts
        await store.close()
        let faults = counts.faults.map { "\($0.key.rawValue)=\($0.value)" }.sorted().joined(separator: " ")
        say("hits=\(hits) wrong=\(wrong) failed=\(counts.failed) disabled=\(counts.isDisabled) \(faults)")
    }

    /// Prints how many of these keys have a whole entry.
    private static func find(_ store: SQLiteCacheStore, keys: Range<Int>) async {
        var found = 0
        for number in keys {
            if let entry = await store.read(Sample.key(number)).entry, Sample.generation(of: entry, number) != nil {
                found += 1
            }
        }
        let counts = store.counts
        await store.close()
        say("found=\(found) putAside=\(counts.putAside) corrupt=\(counts.corrupt)")
    }

    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}
