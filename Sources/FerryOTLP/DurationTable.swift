import Ferry
import FerrySynchronization
import Glibc

/// The histogram `http.client.request.duration`, with the attributes of the semantic conventions for HTTP clients.
///
/// Threads are distributed over shards, so that those that record at the same time rarely wait for each other or for
/// the memory of another core. The shards are added up when the histogram is read. A series has the same number in all
/// of them.
final class DurationTable: Sendable {
    /// The attributes that identify a series.
    struct Series: Hashable, Sendable {
        var method: String
        /// `h`, `h:8443`
        var authority: String
        var isSecure: Bool
        /// 0 without a response.
        var status: Int
        var error: String?

        /// The series for everything beyond the maximum number of series.
        static var overflow: Series { Series(method: "", authority: "", isSecure: false, status: 0) }
    }

    /// All series.
    private struct Registry {
        var numbers: [Series: Int] = [:]
        /// By number.
        var series: [Series] = []
    }

    /// What the threads of a shard have recorded. Durations are in nanoseconds.
    private struct Counts {
        var known = KnownSeries()
        /// A row for each series, by number: the counts of its buckets, the sum of its durations in two words (the
        /// lower one first), and the longest duration.
        var rows: [UInt64] = []

        mutating func add(_ nanoseconds: Int64, to series: Int, _ bucket: Int, width: Int) {
            let start = series * width
            if rows.count < start + width {
                rows.append(contentsOf: repeatElement(0, count: start + width - rows.count))
            }
            // One check of the array instead of one for each word.
            rows.withUnsafeMutableBufferPointer { rows in
                let (duration, last) = (UInt64(nanoseconds), start + width - 1)
                rows[start + bucket] += 1
                let (sum, isTooLarge) = rows[last - 2].addingReportingOverflow(duration)
                rows[last - 2] = sum
                if isTooLarge { rows[last - 1] += 1 }
                if rows[last] < duration { rows[last] = duration }
            }
        }
    }

    private final class Shard: Sendable {
        let counts = Mutex(Counts())
        /// Longer than a cache line, so that no two locks are on the same one.
        private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
    }

    private let bounds: [Double]
    /// The bounds in nanoseconds.
    private let limits: [Int64]
    private let maxSeries: Int
    /// The length of a row.
    private let width: Int
    private let registry = Mutex(Registry())
    private let shards: [Shard] = (0..<16).map { _ in Shard() }
    /// Random, so that nobody can construct names with the same hash.
    private let seed = UInt64.random(in: .min ... .max)
    private let start: UInt64

    init(_ configuration: OTLPConfiguration, since start: UInt64) {
        bounds = configuration.durationBounds.filter(\.isFinite).sorted()
        // No duration is below zero. A bound beyond the range of a duration is above all of them.
        limits = bounds.map { $0 < 0 ? -1 : Duration.seconds(min($0, 1e15)).nanoseconds }
        width = bounds.count + 4
        maxSeries = max(configuration.maxSeries, 1)
        self.start = start
    }

    /// The number of series that are found without their keys, in all shards.
    var knownCount: Int { shards.reduce(0) { sum, shard in sum + shard.counts.withLock { $0.known.count } } }

    // MARK: Recording

    /// Records a run that has received a response or failed.
    func record(_ duration: Duration, of run: RunInfo, _ outcome: RunOutcome) {
        guard case .finished(let status?, _) = outcome, let method = run.method else {
            return record(duration, of: Series(run, outcome))
        }
        let (nanoseconds, shard) = (duration.nanoseconds, shardOfThread)
        let bucket = bucket(of: nanoseconds)
        let label = UInt64(truncatingIfNeeded: status) << 8 | OTLPMethod.number(of: method.rawValue)
        let isDone = run.withOrigin(hashedWith: seed) { origin, hash in
            shard.counts.withLock { counts in
                guard let series = counts.known.number(of: origin, hash, label) else { return false }
                counts.add(nanoseconds, to: series, bucket, width: width)
                return true
            }
        }
        if isDone { return }
        let key = Series(run, outcome)
        let series = number(of: key)
        shard.counts.withLock { $0.add(nanoseconds, to: series, bucket, width: width) }
        // The URL may be spelled in another way, perhaps with a password. Then it is found only by its key.
        guard run.begins(with: (key.isSecure ? "https://" : "http://") + key.authority) else { return }
        // Room for all series, and for some that are counted as overflow.
        let most = min(maxSeries, 1 << 20) + 1024
        _ = run.withOrigin(hashedWith: seed) { origin, hash in
            shard.counts.withLock { $0.known.insert(origin, hash, label, series, most: most) }
            return true
        }
    }

    func record(_ duration: Duration, of key: Series) {
        let (nanoseconds, series) = (duration.nanoseconds, number(of: key))
        let bucket = bucket(of: nanoseconds)
        shardOfThread.counts.withLock { $0.add(nanoseconds, to: series, bucket, width: width) }
    }

    /// Threads are known by the addresses of their descriptors. The multiplication spreads them over the highest bits.
    private var shardOfThread: Shard {
        shards[Int(truncatingIfNeeded: (UInt64(pthread_self()) &* 0x9E37_79B9_7F4A_7C15) >> 60)]
    }

    private func bucket(of nanoseconds: Int64) -> Int { limits.firstIndex { nanoseconds <= $0 } ?? limits.count }

    private func number(of key: Series) -> Int {
        registry.withLock { registry in
            if let number = registry.numbers[key] { return number }
            let kept = registry.series.count < maxSeries ? key : .overflow
            if let number = registry.numbers[kept] { return number }
            registry.numbers[kept] = registry.series.count
            registry.series.append(kept)
            return registry.series.count - 1
        }
    }

    // MARK: Reading

    /// The histogram since the start; empty if nothing was recorded.
    func metrics(at now: UInt64) -> [OTLPMetrics.Metric] {
        let all = registry.withLock { $0.series }
        let parts = shards.map { shard in shard.counts.withLock { $0.rows } }
        let points = all.indices.compactMap { point(of: all[$0], $0, in: parts, at: now) }
        if points.isEmpty { return [] }
        return [
            OTLPMetrics.Metric(
                name: "http.client.request.duration", description: "Duration of HTTP client requests.", unit: "s",
                histogram: OTLPMetrics.Histogram(dataPoints: points))
        ]
    }

    /// `nil` for a series that has its number, but whose first run is not recorded yet.
    private func point(of key: Series, _ number: Int, in parts: [[UInt64]], at now: UInt64) -> OTLPMetrics.Point? {
        var buckets = [UInt64](repeating: 0, count: limits.count + 1)
        var (sum, longest) = (UInt128(0), UInt64(0))
        let (first, last) = (number * width, (number + 1) * width - 1)
        for rows in parts where rows.count > last {
            for index in buckets.indices { buckets[index] += rows[first + index] }
            sum += (UInt128(rows[last - 1]) << 64) | UInt128(rows[last - 2])
            longest = max(longest, rows[last])
        }
        let count = buckets.reduce(0, +)
        if count == 0 { return nil }
        return OTLPMetrics.Point(
            attributes: key.attributes, startTimeUnixNano: String(start), timeUnixNano: String(now),
            count: String(count), sum: Double(sum) / 1e9, bucketCounts: buckets.map { String($0) },
            explicitBounds: bounds, max: Double(longest) / 1e9)
    }
}

/// The numbers of the series that were found lately, by the spelling of their origin: to find one makes no key. Nothing
/// in it has a reference count of its own.
struct KnownSeries {
    private struct Entry {
        var hash: UInt64 = 0
        var label: UInt64 = 0
        /// The place of the origin in `texts`.
        var start = 0
        var length = 0
        /// The number of the series; -1 if the entry is free.
        var series = -1
    }

    /// A power of two of them. At least half of them are free, and the first free one ends a search.
    private var entries: [Entry] = []
    private var texts: [UInt8] = []
    private(set) var count = 0

    /// `label` is what else identifies the series.
    func number(of origin: UnsafeRawBufferPointer, _ hash: UInt64, _ label: UInt64) -> Int? {
        if entries.isEmpty { return nil }
        var place = first(hash, label)
        while entries[place].series >= 0 {
            let entry = entries[place]
            if entry.hash == hash, entry.label == label, isText(of: entry, origin) { return entry.series }
            place = (place + 1) & (entries.count - 1)
        }
        return nil
    }

    /// Forgets all others before there are more than `most`.
    mutating func insert(_ origin: UnsafeRawBufferPointer, _ hash: UInt64, _ label: UInt64, _ series: Int, most: Int) {
        // Another thread of the shard may have missed it at the same time.
        if number(of: origin, hash, label) != nil { return }
        if count >= most { self = KnownSeries() }
        if 2 * count >= entries.count { grow() }
        put(Entry(hash: hash, label: label, start: texts.count, length: origin.count, series: series))
        texts.append(contentsOf: origin)
        count += 1
    }

    private mutating func grow() {
        let old = entries
        entries = Array(repeating: Entry(), count: max(2 * old.count, 16))
        for entry in old where entry.series >= 0 { put(entry) }
    }

    private mutating func put(_ entry: Entry) {
        var place = first(entry.hash, entry.label)
        while entries[place].series >= 0 { place = (place + 1) & (entries.count - 1) }
        entries[place] = entry
    }

    /// Where the search begins.
    private func first(_ hash: UInt64, _ label: UInt64) -> Int {
        Int(truncatingIfNeeded: ((hash ^ label) &* 0x9E37_79B9_7F4A_7C15) >> 32) & (entries.count - 1)
    }

    private func isText(of entry: Entry, _ origin: UnsafeRawBufferPointer) -> Bool {
        texts.withUnsafeBytes { texts in
            guard entry.length == origin.count, let known = texts.baseAddress, let other = origin.baseAddress else {
                return false
            }
            return memcmp(known + entry.start, other, entry.length) == 0
        }
    }
}

extension Duration {
    /// In whole nanoseconds, from zero to the maximum of the type.
    fileprivate var nanoseconds: Int64 {
        let exact = attoseconds
        // A division of 128 bits is slow, and most durations are less than 18 seconds.
        if exact >> 64 == 0 { return Int64(UInt64(truncatingIfNeeded: exact) / 1_000_000_000) }
        return Int64(clamping: max(exact, 0) / 1_000_000_000)
    }
}

extension DurationTable.Series {
    init(_ run: RunInfo, _ outcome: RunOutcome) {
        let error: String? =
            switch outcome {
            case .finished: nil
            case .failed(let error): error.code.label
            case .cancelled: "cancelled"
            }
        self.init(
            method: OTLPMethod.known(run.method?.rawValue ?? ""), authority: run.host, isSecure: run.isSecure,
            status: outcome.status ?? 0, error: error)
    }

    var attributes: [OTLPAttribute] {
        if self == .overflow { return [OTLPAttribute("otel.metric.overflow", true)] }
        var made = [OTLPAttribute("http.request.method", method)]
        made += OTLPAttribute.server(authority, isSecure: isSecure)
        if status != 0 { made.append(OTLPAttribute("http.response.status_code", status)) }
        if let error { made.append(OTLPAttribute("error.type", error)) }
        return made
    }
}

extension OTLPAttribute {
    /// `server.address` and `server.port` of an authority.
    static func server(_ authority: String, isSecure: Bool) -> [OTLPAttribute] {
        let (host, port) = RunSpan.Attempt.server(authority, isSecure: isSecure)
        return [OTLPAttribute("server.address", host), OTLPAttribute("server.port", port)]
    }
}
