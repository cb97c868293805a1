internal import FerryMeasurement

extension Measurement {
    /// Counts and percentiles of all the senders together.
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
