internal import FerryMeasurement

extension BenchReport {
    /// What makes the figures say more of the client than of the server.
    ///
    /// Nothing is said of shares of a run that was too short to take one, nor of a client that was refused as fast as
    /// it could ask.
    static func warnings(_ generator: Generator, seconds: Double, ok: UInt64, unsent: UInt64) -> [String] {
        var warnings: [String] = []
        let saysShares = seconds >= shortest && ok > 0
        if saysShares, generator.process > 0.9 {
            warnings.append("the generator is the limit: it used \(percent(generator.process)) of all cores")
        } else if saysShares, generator.busiestThread > 0.9 {
            warnings.append(
                "the generator is the limit: one of its threads was busy \(percent(generator.busiestThread)) of the time "
                    + "(--loops gives it more)")
        } else if saysShares, generator.machine > 0.95 {
            warnings.append(
                "the machine is the limit: \(percent(generator.machine)) of all cores were in use, "
                    + "\(percent(generator.process)) by the generator")
        }
        if ok > 0, let lag = generator.loopLag["p99"], lag > lagLimit {
            warnings.append("the generator is the limit: its loop was late by \(text(lag)) (p99)")
        }
        if let late = generator.lateness?["p99"], late > lagLimit {
            warnings.append("requests were sent \(text(late)) after their time (p99); latencies count it in")
        }
        if unsent > 0 {
            warnings.append("\(grouped(unsent)) requests were given up: 100,000 others had no answer yet")
        }
        return warnings
    }

    /// What is missing from the figures because the load was cut off, where that may matter: of answers that are not
    /// slow a few are always on their way.
    static func warnings(_ totals: BenchTotals, _ model: BenchPlan.Model) -> [String] {
        let (waited, known) = (totals.unanswered, totals.latencies.maximum)
        if waited.count == 0 || waited.maximum <= known { return [] }
        var figures = "latencies are without them"
        if case .open = model { figures = "latencies count what they had waited" }
        return [
            "\(grouped(waited.count)) requests had no answer when the load was cut off, "
                + "the oldest for \(durationText(nanoseconds: waited.maximum)); \(figures)"
        ]
    }

    /// Seconds: the system counts the use of its cores in hundredths of one.
    private static let shortest = 0.95

    /// Microseconds: a hundredth of a second is what people notice.
    private static let lagLimit = 10_000.0

    private static func percent(_ share: Double) -> String { fixed(share * 100, 0) + " %" }

    private static func text(_ microseconds: Double) -> String {
        durationText(nanoseconds: UInt64(microseconds * 1000))
    }
}
