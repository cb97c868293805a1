/// What one run of a case came to, or why a case has none of this form.
public struct FaultNote: Codable, Sendable {
    /// The number of the case, like `R01`.
    public var row: String
    /// How the body was taken, where the case is played in several forms.
    public var form: String?
    /// What came of it; `nil` in a form that is omitted.
    public var outcome: String?
    /// Why the case has no such form, in a word.
    public var reason: String?
    /// How long it took, which no page can tell: it is another time in every run.
    public var milliseconds: Int?

    /// The outcome of a run that succeeds.
    public static let answered = "response"

    /// The outcome of a test that is no single run.
    public static let held = "as described"

    /// Notes a run of the test that is under way. Nothing in a test that belongs to no case.
    public static func add(form: String? = nil, outcome: String, took time: Duration) {
        FaultCase.current?.add(form: form, outcome: outcome, reason: nil, milliseconds: Int(time / .milliseconds(1)))
    }

    /// Notes that the case means nothing in this form.
    public static func omit(form: String, because reason: String) {
        FaultCase.current?.add(form: form, outcome: nil, reason: reason, milliseconds: nil)
    }
}
