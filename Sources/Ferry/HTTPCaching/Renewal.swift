import FerryTransport

/// A 304 that says nothing new of a stored response but its dates, as nearly every one does (RFC 9111, 3.2). Then the
/// stored fields are not made anew, one by one: the dates are written over, and the body is shared.
struct Renewal {
    /// What its `Date` says.
    let date: HTTPDate
    /// The fields of the stored response that have another value from now on. Their bytes belong to the 304.
    let changes: [TransferResult.FieldChange]

    /// Fields of one response are marked by the bits of a word.
    private static let mostFields = 64

    /// What is asked of the stored response: each name once, a `Date` of the usual form, and no field that may not be
    /// reused.
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

    /// `nil` where the 304 says more than that, or takes more to be understood: then ``ValidationRules`` tell what it
    /// changes.
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
            // One date in the place of another.
            guard Self.use(of: name, value) != .other, value.count == HTTPDate.usualCount,
                stored.field(match).value.count == value.count
            else { return nil }
            changes.append(TransferResult.FieldChange(index: match, value: value))
        }
        guard let date else { return nil }
        (self.date, self.changes) = (date, changes)
    }

    private enum Use { case none, date, expires, other, unknown }

    /// What a field of a 304 is for.
    private static func use(of name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Use {
        switch name.count {
        case 2 where isName(name, "te"): .none
        // The stored response tells its age from what it was when it came.
        case 3 where isName(name, "age"): .unknown
        case 4 where isName(name, "date"): .date
        case 7 where isName(name, "expires"): .expires
        case 7 where isName(name, "trailer") || isName(name, "upgrade"): .none
        case 10 where isName(name, "connection"):
            // Others may be named in it.
            isName(value, "keep-alive") || isName(value, "close") ? .none : .unknown
        case 10 where isName(name, "keep-alive") || isName(name, "set-cookie"): .none
        case 13 where isName(name, "content-range"), 14 where isName(name, "content-length"): .none
        case 16 where isName(name, "content-encoding"): .none
        case 17 where isName(name, "transfer-encoding"): .none
        case 11 where isName(name, "set-cookie2"), 16 where isName(name, "proxy-connection"): .unknown
        default: .other
        }
    }

    /// Where a field of this name is; it is looked for from a place on, as the order is the same as a rule.
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

    /// Compares with a word in lower case.
    private static func isName(_ text: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        equalNames(text, UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}
