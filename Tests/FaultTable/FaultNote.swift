/// The outcome of one run of a case, or why a case has no such form.
public struct FaultNote: Codable, Sendable {
    /// The number of the case, like `R01`.
    public var row: String
    /// How the body was received, if the case is played in several forms.
    public var form: String?
    /// The outcome; `nil` for a form that is omitted.
    public var outcome: String?
    /// Why the case has no such form, in a word.
    public var reason: String?
    /// How long it took. Not on the page, as it differs in every run.
    public var milliseconds: Int?

    /// The outcome of a run that succeeds.
    public static let answered = "response"

    /// The outcome of a test that is more than a single run.
    public static let held = "as described"

    /// Notes a run of the current test. No effect in a test that belongs to no case.
    public static func add(form: String? = nil, outcome: String, took time: Duration) {
        FaultCase.current?.add(form: form, outcome: outcome, reason: nil, milliseconds: Int(time / .milliseconds(1)))
    }

    /// Notes that the case has no meaning in this form.
    public static func omit(form: String, because reason: String) {
        FaultCase.current?.add(form: form, outcome: nil, reason: reason, milliseconds: nil)
    }
}
