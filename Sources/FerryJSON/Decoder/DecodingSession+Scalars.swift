internal import CFerryJSON

extension DecodingSession {
    @inline(__always)
    func isNull(at index: Int) -> Bool { ferry_json_tag(tape, index) == JSONTag.null }

    @inline(__always)
    func bool(at index: Int) throws -> Bool {
        switch ferry_json_tag(tape, index) {
        case JSONTag.yes: true
        case JSONTag.no: false
        // For null too this is Foundation's error, other than for all other types.
        case JSONTag.null: throw wrongKind(Bool.self, at: index)
        default: throw mismatch(Bool.self, at: index)
        }
    }

    @inline(__always)
    func string(at index: Int) throws -> String {
        guard ferry_json_tag(tape, index) == JSONTag.string else { throw mismatch(String.self, at: index) }
        return tape.string(at: index)
    }

    @inline(__always)
    func integer<T: FixedWidthInteger>(at index: Int, as type: T.Type = T.self) throws -> T {
        guard let value = tape.integer(at: index, as: type) else { return try largeInteger(at: index) }
        return value
    }

    /// One that is written with a fraction or an exponent is read again, from its digits: its double may be another.
    @inline(never)
    private func largeInteger<T: FixedWidthInteger>(at index: Int, as type: T.Type = T.self) throws -> T {
        guard ferry_json_tag(tape, index) == JSONTag.double, ferry_json_double(tape, index).magnitude >= 0x1p53,
            let text = numberText(at: index),
            let value: T = JSONNumberText(String(decoding: text, as: UTF8.self)).integer()
        else { throw mismatch(type, at: index) }
        return value
    }

    @inline(__always)
    func double(at index: Int) throws -> Double {
        try tape.number(at: index) ?? nonConforming(Double.self, at: index)
    }

    func float(at index: Int) throws -> Float {
        guard let number = tape.number(at: index) else { return try nonConforming(Float.self, at: index) }
        let float = Float(number)
        guard float.isFinite else { throw mismatch(Float.self, at: index) }
        return float
    }

    /// Numbers that JSON cannot write, as strings.
    private func nonConforming<T: BinaryFloatingPoint>(_ type: T.Type, at index: Int) throws -> T {
        if case .convertFromString(let positive, let negative, let nan) = options.nonConformingFloatDecodingStrategy,
            ferry_json_tag(tape, index) == JSONTag.string
        {
            switch tape.string(at: index) {
            case positive: return .infinity
            case negative: return -.infinity
            case nan: return .nan
            default: break
            }
        }
        throw mismatch(type, at: index)
    }

    /// The error for a value of another kind. A number that the type cannot hold has an empty path, as in Foundation;
    /// the description says where it is.
    @inline(never)
    func mismatch<T>(_ type: T.Type, at index: Int) -> DecodingError {
        if isNull(at: index) {
            let message = message(type, at: index)
            return .valueNotFound(type, .init(codingPath: codingPath(to: index), debugDescription: message))
        }
        if view(at: index).kind == .number, T.self is any Numeric.Type {
            let place = documentPath(to: index)
            return .dataCorrupted(.init(codingPath: [], debugDescription: "\(place): a number that is no \(T.self)"))
        }
        return wrongKind(type, at: index)
    }

    @inline(never)
    private func wrongKind<T>(_ type: T.Type, at index: Int) -> DecodingError {
        .typeMismatch(type, .init(codingPath: codingPath(to: index), debugDescription: message(type, at: index)))
    }

    func notFound<T>(_ type: T.Type, _ message: String, _ path: [any CodingKey]) -> DecodingError {
        .valueNotFound(type, .init(codingPath: path, debugDescription: "expected \(T.self), \(message)"))
    }

    func corrupted(_ message: String, _ path: [any CodingKey], _ error: (any Error)? = nil) -> DecodingError {
        .dataCorrupted(.init(codingPath: path, debugDescription: message, underlyingError: error))
    }
}
