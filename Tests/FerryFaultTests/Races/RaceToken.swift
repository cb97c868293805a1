import FerrySynchronization

@testable import Ferry
@testable import FerryTestSupport

/// Follows one run: it must end once, and report nothing afterwards. The run and its callbacks hold it.
final class RaceToken: Sendable {
    let name: String
    private let record: RaceRecord
    private let ends = Atomic(0)
    private let over = OneShot<Void>()

    init(_ run: RaceRun, _ record: RaceRecord) {
        name = "\(run)"
        self.record = record
        record.begin(self)
    }

    deinit { record.forget() }

    /// A callback before the last.
    func note(_ what: String) {
        if ends.load(ordering: .acquiring) > 0 { record.add(fault: "\(what) after the end of \(name)") }
    }

    /// The last callback; `fault` is what is wrong with the result.
    func end(_ fault: String?) {
        if let fault { record.add(fault: "\(name): \(fault)") }
        if ends.add(1, ordering: .acquiringAndReleasing).newValue > 1 { record.add(fault: "second end of \(name)") }
        record.end(self)
        over.finish(())
    }

    func wait() async { await over.value() }
}
