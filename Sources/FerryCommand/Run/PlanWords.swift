/// What `{{new.…}}` makes.
enum PlanGenerator: String, CaseIterable {
    case uuid, time, number, counter
}

/// What there is of an answer: `{{step.…}}`.
enum PlanAnswerPart: String, CaseIterable {
    case json, text, status, headers
}

extension CaseIterable where Self: RawRepresentable<String> {
    /// The words as people list them.
    static var list: String {
        let words = allCases.map(\.rawValue)
        return words.dropLast().joined(separator: ", ") + " and " + (words.last ?? "")
    }
}
