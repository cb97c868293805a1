internal import CFerryJSON
internal import FoundationEssentials

extension DecodingSession {
    /// Decodes a value of any type: by its strategy if it has one, arrays and dictionaries without containers, and all
    /// others by their own `init(from:)`.
    func decode<T: Decodable>(_ type: T.Type, at index: Int) throws -> T {
        // No helper that returns `T?`: asking the runtime for that type costs as much as a small decode.
        let way = DecodingWay.of(type)
        switch way {
        case .itself:
            if ferry_json_stack_is_low() { throw tooDeep(at: index) }
            return try T(from: TapeDecoder(session: self, index: index))
        case .string: return same(try string(at: index))
        case .strings: return same(try array(at: index) { try string(at: $0) })
        case .ints: return same(try array(at: index) { try integer(at: $0, as: Int.self) })
        case .longs: return same(try array(at: index) { try integer(at: $0, as: Int64.self) })
        case .doubles: return same(try array(at: index) { try double(at: $0) })
        case .bools: return same(try array(at: index) { try bool(at: $0) })
        case .points: return same(try array(at: index) { try array(at: $0) { try double(at: $0) } })
        case .stringsByKey: return same(try dictionary(at: index) { try string(at: $0) })
        case .intsByKey: return same(try dictionary(at: index) { try integer(at: $0, as: Int.self) })
        case .doublesByKey: return same(try dictionary(at: index) { try double(at: $0) })
        case .date: return same(try date(at: index))
        case .data: return same(try data(at: index))
        case .url: return same(try url(at: index))
        case .uuid: return same(try uuid(at: index))
        case .decimal: return same(try decimal(at: index))
        case .json: return same(view(at: index))
        default:
            if ferry_json_stack_is_low() { throw tooDeep(at: index) }
            return try way.reader(of: type).value(at: index, in: self)
        }
    }

    /// The value as the type that the caller knows. The way of the type guarantees that the cast is correct.
    @inline(__always)
    private func same<From, To>(_ value: From, as type: To.Type = To.self) -> To {
        unsafeBitCast(value, to: type)
    }

    @inline(never)
    private func tooDeep(at index: Int) -> DecodingError {
        .dataCorrupted(
            .init(
                codingPath: codingPath(to: index), debugDescription: "nested too deeply for the stack of this thread"))
    }

    @inline(__always)
    func array<Element>(at index: Int, _ element: (Int) throws -> Element) throws -> [Element] {
        guard ferry_json_tag(tape, index) == JSONTag.array else { throw mismatch([Any].self, at: index) }
        var array: [Element] = []
        array.reserveCapacity(ferry_json_count(tape, index))
        let end = ferry_json_close(tape, index)
        var place = index + 1
        while place < end {
            array.append(try element(place))
            place = ferry_json_after(tape, place)
        }
        return array
    }

    /// Decodes a dictionary. Its keys are data, which no strategy converts.
    @inline(__always)
    func dictionary<Value>(at index: Int, _ value: (Int) throws -> Value) throws -> [String: Value] {
        var dictionary: [String: Value] = [:]
        try members(at: index) {
            dictionary.reserveCapacity($0)
        } each: { key, place in
            do {
                dictionary[tape.string(at: key)] = try value(place)
            } catch {
                if !isShadowed(key, in: index) { throw error }
            }
        }
        return dictionary
    }

    /// The keys and values of an object, in the order of the document.
    @inline(__always)
    func members(
        at index: Int, converting: Bool = false, _ reserve: (Int) -> Void, each: (Int, Int) throws -> Void
    ) throws {
        guard ferry_json_tag(tape, index) == JSONTag.object else { throw mismatch([String: Any].self, at: index) }
        if !converting { noteDictionary(at: index) }
        reserve(ferry_json_count(tape, index))
        let end = ferry_json_close(tape, index)
        var key = index + 1
        while key < end {
            try each(key, key + 1)
            key = ferry_json_after(tape, key + 1)
        }
    }
}

// MARK: Foundation's types

extension DecodingSession {
    /// Decodes a date. `isAlone` says whether a single value container was asked for it: in Foundation the path of an
    /// error then includes the date, and otherwise ends above it.
    func date(at index: Int, isAlone: Bool = false) throws -> Date {
        guard !isNull(at: index) else { throw mismatch(Date.self, at: index) }
        switch options.dateDecodingStrategy {
        case .deferredToDate: return try Date(from: TapeDecoder(session: self, index: index))
        case .secondsSince1970: return Date(timeIntervalSince1970: try double(at: index))
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try double(at: index) / 1000)
        case .iso8601:
            guard ferry_json_tag(tape, index) == JSONTag.string else { throw mismatch(String.self, at: index) }
            if let date = Date(plainTimestamp: tape.utf8(at: index)) { return date }
            do {
                return try Date.ISO8601FormatStyle().parse(tape.string(at: index))
            } catch {
                let path = codingPath(to: index)
                throw corrupted("not an ISO 8601 date", isAlone ? path : Array(path.dropLast()), error)
            }
        case .parsed(let parse):
            let text = try string(at: index)
            do {
                return try parse(text)
            } catch {
                throw corrupted("not a date in the expected format", codingPath(to: index), error)
            }
        case .custom(let make): return try make(TapeDecoder(session: self, index: index))
        }
    }

    private func data(at index: Int) throws -> Data {
        guard !isNull(at: index) else { throw mismatch(Data.self, at: index) }
        switch options.dataDecodingStrategy {
        case .deferredToData: return try Data(from: TapeDecoder(session: self, index: index))
        case .base64:
            guard let data = Data(base64Encoded: try string(at: index)) else {
                throw corrupted("not base 64", codingPath(to: index))
            }
            return data
        case .custom(let make): return try make(TapeDecoder(session: self, index: index))
        }
    }

    private func url(at index: Int) throws -> URL {
        guard !isNull(at: index) else { throw mismatch(URL.self, at: index) }
        guard let url = URL(string: try string(at: index)) else {
            throw corrupted("not a URL", codingPath(to: index))
        }
        return url
    }

    private func uuid(at index: Int) throws -> UUID {
        guard ferry_json_tag(tape, index) == JSONTag.string else { throw mismatch(String.self, at: index) }
        guard let uuid = UUID(digits: tape.utf8(at: index)) else {
            throw corrupted("not a UUID", codingPath(to: index))
        }
        return uuid
    }

    /// Decodes a decimal from its digits in the text if the text is available, and otherwise from the shortest digits
    /// of the double.
    private func decimal(at index: Int) throws -> Decimal {
        switch ferry_json_tag(tape, index) {
        case JSONTag.signed: return Decimal(Int64(bitPattern: tape.words[index + 1]))
        case JSONTag.unsigned: return Decimal(tape.words[index + 1])
        default: break
        }
        guard let number = tape.number(at: index) else { throw mismatch(Decimal.self, at: index) }
        guard let digits = numberText(at: index) else {
            guard let decimal = Decimal(string: "\(number)") else { throw mismatch(Decimal.self, at: index) }
            return decimal
        }
        if let decimal = DecimalDigits(digits)?.decimal { return decimal }
        guard let decimal = Decimal(string: String(decoding: digits, as: UTF8.self)) else {
            throw mismatch(Decimal.self, at: index)
        }
        return decimal
    }
}
