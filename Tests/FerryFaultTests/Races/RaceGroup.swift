@testable import Ferry
@testable import FerryTestSupport

/// The batch or chain of a run, as a chain whose value describes what is wrong.
struct RaceGroup {
    let chain: ChainRequest<String?>

    init(_ run: RaceRun, _ requests: [RaceRequest]) {
        let limit = 1 + run.choice % 4
        switch run.form {
        case .batch, .startedBatch:
            if run.choice % 2 == 0 {
                chain = ChainRequest(BatchRequest(requests, atMost: limit)).map { responses in
                    zip(requests, responses).lazy.compactMap { $0.target.fault($1) }.first
                }
            } else {
                chain = ChainRequest(BatchRequest(requests, .collectAll, atMost: limit)).map { results in
                    results.count == requests.count ? nil : "\(results.count) results"
                }
            }
        default:
            chain = requests.reduce(ChainRequest(value: nil)) { chain, request in
                chain.onValue { _ in await Task.yield() }.then { fault in
                    ChainRequest(request).map { fault ?? request.target.fault($0) }
                }
            }
        }
    }
}
