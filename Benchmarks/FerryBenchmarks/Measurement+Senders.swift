internal import FerryMeasurement

extension Measurement {
    /// Combines the counts and percentiles of all senders.
    mutating func add(_ senders: [SenderResult]) {
        var histogram = Histogram()
        for sender in senders {
            ok += sender.ok
            wrong += sender.wrong
            failed += sender.failed
            for latency in sender.latencies { histogram.record(latency) }
        }
        setLatencies(histogram)
    }
}
