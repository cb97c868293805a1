/// The ends of a range, whichever of Swift's ranges it is.
struct SchemaBounds<Bound: Comparable> {
    let minimum: Bound?
    let maximum: Bound?
    var excludesMaximum = false

    init(_ range: some RangeExpression<Bound>) {
        switch range {
        case let range as ClosedRange<Bound>: (minimum, maximum) = (range.lowerBound, range.upperBound)
        case let range as Range<Bound>:
            (minimum, maximum, excludesMaximum) = (range.lowerBound, range.upperBound, true)
        case let range as PartialRangeFrom<Bound>: (minimum, maximum) = (range.lowerBound, nil)
        case let range as PartialRangeThrough<Bound>: (minimum, maximum) = (nil, range.upperBound)
        case let range as PartialRangeUpTo<Bound>: (minimum, maximum, excludesMaximum) = (nil, range.upperBound, true)
        default: preconditionFailure("only the standard library's ranges bound numbers")
        }
    }
}
