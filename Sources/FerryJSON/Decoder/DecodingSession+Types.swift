internal import CFerryJSON
internal import FoundationEssentials

extension DecodingSession {
    /// Decodes a value of any type: those with a strategy by it, arrays and dictionaries of plain values without
    /// containers, the others by themselves.
    func decode<T: Decodable>(_ type: T.Type, at index: Int, keepingKeys: Bool = false) throws -> T {
        // No helper that returns `T?`: asking the runtime for that type costs as much as a small decode.
        if T.self == [String].self { return same(try array(at: index) { try string(at: $0) }) }
        if T.self == [Int].self { return same(try array(at: index) { try integer(at: $0, as: Int.self) }) }
        if T.self == [Double].self { return same(try array(at: index) { try double(at: $0) }) }
        if T.self == [Bool].self { return same(try array(at: index) { try bool(at: $0) }) }
        if T.self == [Int64].self { return same(try array(at: index) { try integer(at: $0, as: Int64.self) }) }
        if T.self == [[Double]].self {
            return same(try array(at: index) { try array(at: $0) { try double(at: $0) } })
        }
        if T.self == Date.self { return same(try date(at: index)) }
        if T.self == Data.self { return same(try data(at: index)) }
        if T.self == URL.self { return same(try url(at: index)) }
        if T.self == Decimal.self { return same(try decimal(at: index)) }
        if T.self == JSON.self { return same(view(at: index)) }
        if T.self == String.self { return same(try string(at: index)) }
        if ferry_json_stack_is_low() { throw tooDeep(at: index) }
        if !usesDefaultKeys, T.self is any StringKeyed.Type {
            return try T(from: TapeDecoder(session: self, index: index, keepsKeys: true))
        }
        return try T(from: TapeDecoder(session: self, index: index, keepsKeys: false))
    }

    @inline(never)
    private func tooDeep(at index: Int) -> DecodingError {
        .dataCorrupted(
            .init(
                codingPath: codingPath(to: index), debugDescription: "nested too deeply for the stack of this thread"))
    }

    /// The value under the name that the caller knows its type by: it was compared before.
    @inline(__always)
    private func same<From, To>(_ value: From, as type: To.Type = To.self) -> To {
        unsafeBitCast(value, to: type)
    }

    @inline(__always)
    private func array<Element>(at index: Int, _ element: (Int) throws -> Element) throws -> [Element] {
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

    private func date(at index: Int) throws -> Date {
        guard !isNull(at: index) else { throw mismatch(Date.self, at: index) }
        switch options.dateDecodingStrategy {
        case .deferredToDate: return try Date(from: TapeDecoder(session: self, index: index, keepsKeys: false))
        case .secondsSince1970: return Date(timeIntervalSince1970: try double(at: index))
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try double(at: index) / 1000)
        case .iso8601:
            let text = try string(at: index)
            do {
                return try Date.ISO8601FormatStyle().parse(text)
            } catch {
                // Foundation's path ends above the date.
                throw corrupted("not a date of ISO 8601", Array(codingPath(to: index).dropLast()), error)
            }
        case .parsed(let parse):
            let text = try string(at: index)
            do {
                return try parse(text)
            } catch {
                throw corrupted("not a date of the format", codingPath(to: index), error)
            }
        case .custom(let make): return try make(TapeDecoder(session: self, index: index, keepsKeys: false))
        }
    }

    private func data(at index: Int) throws -> Data {
        guard !isNull(at: index) else { throw mismatch(Data.self, at: index) }
        switch options.dataDecodingStrategy {
        case .deferredToData: return try Data(from: TapeDecoder(session: self, index: index, keepsKeys: false))
        case .base64:
            guard let data = Data(base64Encoded: try string(at: index)) else {
                throw corrupted("not base 64", codingPath(to: index))
            }
            return data
        case .custom(let make): return try make(TapeDecoder(session: self, index: index, keepsKeys: false))
        }
    }

    private func url(at index: Int) throws -> URL {
        guard !isNull(at: index) else { throw mismatch(URL.self, at: index) }
        guard let url = URL(string: try string(at: index)) else {
            throw corrupted("not a URL", codingPath(to: index))
        }
        return url
    }

    /// From the digits as they were written, where they are at hand; otherwise from the shortest that give the double.
    private func decimal(at index: Int) throws -> Decimal {
        switch ferry_json_tag(tape, index) {
        case JSONTag.signed: return Decimal(Int64(bitPattern: tape.words[index + 1]))
        case JSONTag.unsigned: return Decimal(tape.words[index + 1])
        default: break
        }
        guard let number = tape.number(at: index) else { throw mismatch(Decimal.self, at: index) }
        guard let decimal = Decimal(string: numberText(at: index) ?? "\(number)") else {
            throw mismatch(Decimal.self, at: index)
        }
        return decimal
    }
}

/// Dictionaries whose keys are data and not names: no strategy converts them.
private protocol StringKeyed {}
extension Dictionary: StringKeyed where Key == String, Value: Decodable {}
