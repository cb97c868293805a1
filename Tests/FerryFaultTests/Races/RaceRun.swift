import Ferry

@testable import FerryTestSupport

/// One run of a race, chosen at random.
struct RaceRun: Sendable, CustomStringConvertible {
    enum Form: CaseIterable {
        case awaited, shared, closure, delegate, stream, abandonedStream, download, startedDownload
        case batch, startedBatch, chain, startedChain, cached, startedCached, cachedThenNetwork
    }

    /// The moment at which it is ended.
    enum Moment {
        case never
        case atOnce
        /// After this many turns of the scheduler.
        case turns(Int)
        case microseconds(Int)
    }

    let number: Int
    let form: Form
    let moment: Moment
    /// One, but any number for a batch or chain.
    let targets: [RaceTarget]
    /// Decides everything else that may vary.
    let choice: Int
    /// The name of its file, if it is a download.
    let name: String?

    init(_ number: Int, using random: inout SplitMix) {
        self.number = number
        form = Form.allCases.randomElement(using: &random)!
        choice = Int.random(in: 0..<1 << 30, using: &random)
        moment =
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1: .never
            case 2: .atOnce
            case 3...5: .turns(Int.random(in: 0..<200, using: &random))
            default: .microseconds(Int.random(in: 0..<5000, using: &random))
            }
        let isShared = choice % 8 == 0
        name =
            switch form {
            case .download, .startedDownload: isShared ? "shared" : "\(number)"
            default: nil
            }
        targets =
            switch form {
            case .batch, .startedBatch, .chain, .startedChain:
                (0..<Int.random(in: 0..<5, using: &random)).map { _ in RaceTarget.all.randomElement(using: &random)! }
            case .cached, .startedCached, .cachedThenNetwork: [.kept]
            case .download where isShared, .startedDownload where isShared: [.large]
            default: [RaceTarget.all.randomElement(using: &random)!]
            }
    }

    var description: String { "run \(number), \(form) of \(targets.map(\.path)), ended \(moment)" }

    /// What is wrong with this outcome; `nil` if it is allowed.
    func fault(_ error: RequestError, mayShutDown: Bool) -> String? {
        switch error.code {
        case .cancelled:
            if case .never = moment { return "\(error)" } else { return nil }
        case .shutdown: return mayShutDown ? nil : "\(error)"
        // Two downloads into one file.
        case .fileIO: return name == "shared" ? nil : "\(error)"
        case .notCached: return form == .cached || form == .startedCached ? nil : "\(error)"
        default: return targets.contains { $0.codes.contains { $0 ~= error } } ? nil : "\(error)"
        }
    }

    /// Waits for the moment, and ends the run.
    func end(by cancel: () -> Void) async {
        switch moment {
        case .never: return
        case .atOnce: break
        case .turns(let turns): for _ in 0..<turns { await Task.yield() }
        case .microseconds(let time): try? await Task.sleep(for: .microseconds(time))
        }
        cancel()
    }
}
