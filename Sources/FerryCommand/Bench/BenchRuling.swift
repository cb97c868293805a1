/// How a load ends: what the exit code says, the page says too.
struct BenchRuling: Sendable, Equatable {
    let exitCode: ExitCode
    /// Whether failures or wrong bodies have part in it; conditions may let some of them pass.
    let blamesFailures: Bool

    /// `mustBeRight` says whether a wrong body fails the load.
    init(_ report: BenchReport, _ verdict: BenchVerdict, mustBeRight: Bool, wasInterrupted: Bool = false) {
        let missed = (report.checks ?? []).filter { $0.verdict == .failed }
        let fails = report.failed > 0 && !verdict.decides(on: "failed")
        let isWrong = mustBeRight && report.wrongBodies > 0 && !verdict.decides(on: "wrong")
        blamesFailures = fails || isWrong || missed.contains { ["failed", "wrong"].contains($0.figure) }
        if wasInterrupted {
            exitCode = .interrupted
        } else if !missed.isEmpty {
            exitCode = .validationFailed
        } else if fails {
            exitCode = Self.exitCode(ofFailures: report)
        } else {
            exitCode = isWrong ? .validationFailed : .success
        }
    }

    private static func exitCode(ofFailures report: BenchReport) -> ExitCode {
        if report.failedBy.body == report.failed { return .validationFailed }
        return report.failedBy.status == report.failed ? .statusNotAccepted : .transferFailed
    }

    /// For the page.
    var word: String {
        switch exitCode {
        case .success: "ok"
        case .interrupted: "interrupted"
        default: "failed"
        }
    }
}
