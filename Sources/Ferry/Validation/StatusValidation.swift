/// Which status codes are a success.
public struct StatusValidation: Sendable {
    private enum Rule: Sendable {
        case range(ClosedRange<Int>)
        case codes(Set<Int>)
        case closure(@Sendable (Int) -> Bool)
    }

    private let rule: Rule

    /// 200 to 299.
    public static var successful: StatusValidation { StatusValidation(rule: .range(200...299)) }

    /// Every status; the caller looks for itself.
    public static var any: StatusValidation { StatusValidation(rule: .range(0...Int.max)) }

    /// The codes of a range.
    public static func range(_ range: ClosedRange<Int>) -> StatusValidation { StatusValidation(rule: .range(range)) }

    /// These codes and no other.
    public static func codes(_ codes: Set<Int>) -> StatusValidation { StatusValidation(rule: .codes(codes)) }

    /// The codes for which the closure says true. It runs where the run is processed and must not block.
    public static func custom(_ accepts: @escaping @Sendable (Int) -> Bool) -> StatusValidation {
        StatusValidation(rule: .closure(accepts))
    }

    /// Whether this status was meant, and is not only one of all successes: a range that reaches into 200 to 299 does
    /// not name the codes in there, unless it is ``any``.
    func names(_ status: Int) -> Bool {
        if case .range(let range) = rule, range != 0...Int.max, 200...299 ~= status { return false }
        return accepts(status)
    }

    /// Whether this status is a success.
    public func accepts(_ status: Int) -> Bool {
        switch rule {
        case .range(let range): range.contains(status)
        case .codes(let codes): codes.contains(status)
        case .closure(let accepts): accepts(status)
        }
    }
}
