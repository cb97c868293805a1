// Values made by hand, for the bodies of requests; views of other documents may be parts of them.
extension JSON {
    public static let null = JSON { $0.appendNull() }

    public init(_ value: Bool) { self = value ? Self.yes : Self.no }
    public init(_ value: Int) { self.init { $0.append(Int64(value)) } }
    public init(_ value: Int64) { self.init { $0.append(value) } }
    public init(_ value: UInt) { self.init { $0.append(UInt64(value)) } }
    public init(_ value: UInt64) { self.init { $0.append(value) } }
    public init(_ value: String) { self.init { $0.append(value) } }

    /// A number that is not finite is no JSON; it becomes null.
    public init(_ value: Double) { self.init { value.isFinite ? $0.append(value) : $0.appendNull() } }

    public init(_ elements: some Sequence<JSON>) {
        self.init { tape in
            tape.openArray()
            for element in elements { tape.append(element) }
            tape.close()
        }
    }

    /// An object whose members have the order of the sequence.
    public init(members: some Sequence<(String, JSON)>) {
        self.init { tape in
            tape.openObject()
            for (key, value) in members {
                tape.append(key: key)
                tape.append(value)
            }
            tape.close()
        }
    }

    /// An object; its members are sorted by key.
    public init(_ members: [String: JSON]) {
        self.init(members: members.sorted { $0.key < $1.key }.lazy.map { ($0.key, $0.value) })
    }

    private static let yes = JSON { $0.append(true) }
    private static let no = JSON { $0.append(false) }

    private init(_ write: (inout TapeBuilder) -> Void) {
        var tape = TapeBuilder()
        write(&tape)
        self.init(document: tape.finish(), index: 1)
    }
}

// Not `nil`: where a `JSON?` is asked for, it would be the value null as easily as no value.
extension JSON: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    public init(booleanLiteral value: Bool) { self.init(value) }
    public init(integerLiteral value: Int) { self.init(value) }
    public init(floatLiteral value: Double) { self.init(value) }
    public init(stringLiteral value: String) { self.init(value) }
    public init(arrayLiteral elements: JSON...) { self.init(elements) }
    public init(dictionaryLiteral members: (String, JSON)...) { self.init(members: members) }
}
