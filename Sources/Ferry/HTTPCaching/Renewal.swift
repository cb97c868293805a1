import FerryTransport

/// The changes of a 304 that updates only dates of the stored response, as nearly every 304 does (RFC 9111, 3.2). Then
/// the stored fields need not be built again one by one: the dates are overwritten, and the body is shared.
struct Renewal {
    /// The value of the 304's `Date`.
    let date: HTTPDate
    /// The fields of the stored response that get another value. Their bytes belong to the 304.
    let changes: [TransferResult.FieldChange]

    /// The matched fields of a response are the bits of one word.
    private static let mostFields = 64

    /// Whether a stored response can be updated in this way: no name occurs twice, its `Date` has the usual form, and
    /// all fields may be reused.
    static func applies(to stored: TransferResult, _ directives: ResponseDirectives) -> Bool {
        guard stored.headerCount <= mostFields, directives.noCacheFields.isEmpty, directives.privateFields.isEmpty
        else { return false }
        var hasDate = false
        for index in 0..<stored.headerCount {
            let (name, value) = stored.field(index)
            for other in 0..<index where equalNames(stored.field(other).name, name) { return false }
            if isName(name, "date") { hasDate = HTTPDate(usual: value) != nil }
        }
        return hasDate
    }

    /// `nil` if the 304 changes more than dates, or if this simple comparison cannot tell. Then ``ValidationRules``
    /// decide what it changes.
    init?(of stored: TransferResult, by response: TransferResult) {
        var date: HTTPDate?
        var changes: [TransferResult.FieldChange] = []
        var found: UInt64 = 0
        var place = 0
        for index in 0..<response.headerCount {
            let (name, value) = response.field(index)
            switch Self.use(of: name, value) {
            case .none: continue
            case .unknown: return nil
            case .date:
                guard date == nil, let read = HTTPDate(usual: value) else { return nil }
                date = read
            case .expires, .other: break
            }
            guard let match = Self.place(of: name, in: stored, from: place), found & (1 << UInt64(match)) == 0
            else { return nil }
            found |= 1 << UInt64(match)
            place = match + 1
            if Self.isSame(stored.field(match).value, value) { continue }
            // Only a date may replace another date of the same length.
            guard Self.use(of: name, value) != .other, value.count == HTTPDate.usualCount,
                stored.field(match).value.count == value.count
            else { return nil }
            changes.append(TransferResult.FieldChange(index: match, value: value))
        }
        guard let date else { return nil }
        (self.date, self.changes) = (date, changes)
    }

    /// `none`: the field does not update the stored response. `unknown`: this comparison does not handle it.
    private enum Use { case none, date, expires, other, unknown }

    /// What a field of a 304 does to the stored response.
    private static func use(of name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Use {
        switch name.count {
        case 2 where isName(name, "te"): .none
        // The age of the stored response is computed from its age on arrival.
        case 3 where isName(name, "age"): .unknown
        case 4 where isName(name, "date"): .date
        case 7 where isName(name, "expires"): .expires
        case 7 where isName(name, "trailer") || isName(name, "upgrade"): .none
        case 10 where isName(name, "connection"):
            // It may name other fields.
            isName(value, "keep-alive") || isName(value, "close") ? .none : .unknown
        case 10 where isName(name, "keep-alive") || isName(name, "set-cookie"): .none
        case 13 where isName(name, "content-range"), 14 where isName(name, "content-length"): .none
        case 16 where isName(name, "content-encoding"): .none
        case 17 where isName(name, "transfer-encoding"): .none
        case 11 where isName(name, "set-cookie2"), 16 where isName(name, "proxy-connection"): .unknown
        default: .other
        }
    }

    /// The index of the stored field with this name. The search begins at `start`, because both responses usually have
    /// the same order of fields.
    private static func place(of name: UnsafeRawBufferPointer, in stored: TransferResult, from start: Int) -> Int? {
        let count = stored.headerCount
        for step in 0..<count {
            let index = start + step < count ? start + step : start + step - count
            if equalNames(stored.field(index).name, name) { return index }
        }
        return nil
    }

    private static func isSame(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        left.count == right.count && left.elementsEqual(right)
    }

    /// Compares a name, in any case, with a word in lower case.
    private static func isName(_ text: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        equalNames(text, UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}
