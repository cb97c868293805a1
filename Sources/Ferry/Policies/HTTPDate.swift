/// A date in HTTP's format (RFC 9110, 5.6.7), in whole seconds since 1970. A leap second counts as the second before.
struct HTTPDate: Sendable, Hashable, CustomStringConvertible {
    let secondsSince1970: Int64

    init(secondsSince1970: Int64) { self.secondsSince1970 = secondsSince1970 }

    /// Parses all three forms: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and
    /// `Sun Nov  6 08:49:37 1994`. `nil` for any other text; a wrong day of the week is ignored.
    ///
    /// A year with two digits is the one that is at most 50 years ahead of `now`. A cache parses dates without regard
    /// to case (RFC 9111, 4.2): `ignoresCase`.
    init?(_ text: String, now: HTTPDate, ignoresCase: Bool = false) {
        let usual = text.utf8.withContiguousStorageIfAvailable { HTTPDate(usual: UnsafeRawBufferPointer($0)) }
        if let usual = usual ?? nil {
            self = usual
            return
        }
        var reader = Reader(text, ignoresCase: ignoresCase)
        guard let word = reader.letters(), word.count >= 3 else { return nil }
        let date: (year: Int, month: Int, day: Int)
        let time: Int
        if reader.skip(", ") {
            guard let day = reader.number(2), let separator = reader.oneOf(" -"), let month = reader.month(),
                reader.skip(separator)
            else { return nil }
            let isShort = separator == "-"
            guard let number = reader.number(isShort ? 2 : 4), reader.skip(" "), let found = reader.time(),
                reader.skip(" GMT")
            else { return nil }
            date = (isShort ? Self.year(of: number, now: now) : number, month, day)
            time = found
        } else {
            guard reader.skip(" "), let month = reader.month(), reader.skip(" "),
                let day = reader.skip(" ") ? reader.number(1) : reader.number(2), reader.skip(" "),
                let found = reader.time(), reader.skip(" "), let year = reader.number(4)
            else { return nil }
            date = (year, month, day)
            time = found
        }
        guard reader.isAtEnd, date.day >= 1, date.day <= Self.days(in: date.month, of: date.year) else { return nil }
        secondsSince1970 = Self.days(from: date) * 86400 + Int64(time)
    }

    /// Parses the one form that is written today, like `Sun, 06 Nov 1994 08:49:37 GMT`. `nil` for any other text, which
    /// may still be a date.
    init?(usual text: UnsafeRawBufferPointer) {
        guard text.count == Self.usualCount else { return nil }
        func number(_ at: Int) -> Int? {
            let (tens, ones) = (text[at], text[at + 1])
            guard (0x30...0x39).contains(tens), (0x30...0x39).contains(ones) else { return nil }
            return Int(tens - 0x30) * 10 + Int(ones - 0x30)
        }
        func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(lowercased(byte)) }
        func word(_ at: Int) -> UInt32 {
            UInt32(text[at]) << 16 | UInt32(text[at + 1]) << 8 | UInt32(text[at + 2])
        }
        guard isLetter(text[0]), isLetter(text[1]), isLetter(text[2]), text[3] == 0x2C, text[4] == 0x20,
            text[7] == 0x20, text[11] == 0x20, text[16] == 0x20, text[19] == 0x3A, text[22] == 0x3A,
            text[25] == 0x20, word(26) == 0x474D54, let day = number(5), let century = number(12),
            let year = number(14), let hours = number(17), let minutes = number(20), let seconds = number(23),
            let month = Self.monthWords.firstIndex(of: word(8)), hours < 24, minutes < 60, seconds <= 60
        else { return nil }
        let date = (year: century * 100 + year, month: month + 1, day: day)
        guard day >= 1, day <= Self.days(in: date.month, of: date.year) else { return nil }
        secondsSince1970 = Self.days(from: date) * 86400 + Int64(hours * 3600 + minutes * 60 + min(seconds, 59))
    }

    /// The length of the usual form in bytes.
    static let usualCount = 29
    /// The names of the months as numbers.
    private static let monthWords = months.map { $0.utf8.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    var description: String {
        var days = secondsSince1970 / 86400
        var time = secondsSince1970 % 86400
        if time < 0 {
            days -= 1
            time += 86400
        }
        let (year, month, day) = Self.date(of: days)
        let weekday = Self.weekdays[Int(((days + 4) % 7 + 7) % 7)]
        let clock = [time / 3600, time / 60 % 60, time % 60].map(Self.twoDigits).joined(separator: ":")
        let years = String(repeating: "0", count: max(0, 4 - String(year).count)) + String(year)
        return "\(weekday), \(Self.twoDigits(Int64(day))) \(Self.months[month - 1]) \(years) \(clock) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    fileprivate static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func year(of twoDigits: Int, now: HTTPDate) -> Int {
        let present = date(of: now.secondsSince1970 / 86400).year
        let year = present / 100 * 100 + twoDigits
        return year > present + 50 ? year - 100 : year
    }

    private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days since 1970, in years that begin with March, so that the leap day is the last of the year.
    private static func days(from date: (year: Int, month: Int, day: Int)) -> Int64 {
        let year = date.month > 2 ? date.year : date.year - 1
        let dayOfYear = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1
        let leaps = year >= 0 ? year / 4 - year / 100 + year / 400 : -1
        return Int64(year) * 365 + Int64(leaps + dayOfYear) - 719_468
    }

    private static func date(of days: Int64) -> (year: Int, month: Int, day: Int) {
        let shifted = Int(days) + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}

extension HTTPDate {
    /// Parses a date from left to right.
    private struct Reader {
        private var rest: Substring.UTF8View
        private let ignoresCase: Bool

        init(_ text: String, ignoresCase: Bool) {
            rest = Substring(text).utf8
            self.ignoresCase = ignoresCase
        }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func skip(_ text: String) -> Bool {
            guard rest.starts(with: text.utf8, by: isSame) else { return false }
            rest = rest.dropFirst(text.utf8.count)
            return true
        }

        private func isSame(_ left: UInt8, _ right: UInt8) -> Bool {
            left == right || (ignoresCase && lowercased(left) == lowercased(right))
        }

        mutating func oneOf(_ choices: String) -> String? {
            for choice in choices where skip(String(choice)) { return String(choice) }
            return nil
        }

        mutating func letters() -> Substring? {
            let word = rest.prefix { lowercased($0) >= 0x61 && lowercased($0) <= 0x7A }
            rest = rest.dropFirst(word.count)
            return word.isEmpty ? nil : Substring(word)
        }

        /// Exactly this many digits.
        mutating func number(_ digits: Int) -> Int? {
            let word = rest.prefix(digits)
            guard word.count == digits, word.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
            rest = rest.dropFirst(digits)
            return word.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }

        mutating func month() -> Int? {
            guard let word = letters() else { return nil }
            return HTTPDate.months.firstIndex { $0.utf8.elementsEqual(word.utf8, by: isSame) }.map { $0 + 1 }
        }

        /// The seconds since midnight of a time like `08:49:37`.
        mutating func time() -> Int? {
            guard let hours = number(2), skip(":"), let minutes = number(2), skip(":"), let seconds = number(2),
                hours < 24, minutes < 60, seconds <= 60
            else { return nil }
            return hours * 3600 + minutes * 60 + min(seconds, 59)
        }
    }
}
