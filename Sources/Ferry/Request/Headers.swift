package import FerryTransport
import Glibc

/// Header fields in order. Names are compared without regard to case (RFC 9110, 5.1).
///
/// The fields of a response are decoded from the response's memory when they are read.
public struct Headers: Sendable {
    /// One field.
    public struct Field: Sendable, Hashable {
        /// The name as it was written.
        public var name: String
        /// The value without surrounding white space.
        public var value: String

        /// Creates a field.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    private enum Storage: Sendable {
        case own([Field])
        case received(TransferResult)
        /// Followed by an `Age` field with this value.
        case aged(TransferResult, String)
    }

    private var storage: Storage

    /// Creates an empty list of fields.
    public init() { storage = .own([]) }

    /// Creates a list of fields in this order.
    public init(_ fields: [Field]) { storage = .own(fields) }

    package init(_ result: TransferResult) { storage = .received(result) }

    /// The fields of a stored response, which has no `Age` field, and its current age in seconds (RFC 9111, 5.1).
    init(_ result: TransferResult, age: Int64) { storage = .aged(result, String(age)) }

    private static let age = "Age"

    /// The fields as an array.
    public var fields: [Field] {
        switch storage {
        case .own(let fields): fields
        case .received(let result): (0..<result.headerCount).map { Self.field($0, of: result) }
        case .aged(let result, let age):
            (0..<result.headerCount).map { Self.field($0, of: result) } + [Field(name: Self.age, value: age)]
        }
    }

    /// The value of the fields with this name, joined by `, ` if there are several (RFC 9110, 5.2); `nil` if there is
    /// none.
    ///
    /// Setting a value replaces all fields of this name by one, at the position of the first. Setting `nil` removes
    /// them. `Set-Cookie` fields cannot be joined: use ``values(of:)``.
    public subscript(name: String) -> String? {
        get {
            var joined: String?
            each(named: name) { value in
                if let before = joined { joined = before + ", " + value } else { joined = value }
            }
            return joined
        }
        set {
            var fields = self.fields
            let first = fields.firstIndex { equalNames($0.name, name) }
            if let newValue, let first {
                fields[first].value = newValue
                var kept = fields[...first]
                kept += fields[(first + 1)...].filter { !equalNames($0.name, name) }
                fields = Array(kept)
            } else if let newValue {
                fields.append(Field(name: name, value: newValue))
            } else {
                fields.removeAll { equalNames($0.name, name) }
            }
            storage = .own(fields)
        }
    }

    /// The values of all fields with this name, in order.
    public func values(of name: String) -> [String] {
        var values: [String] = []
        each(named: name) { values.append($0) }
        return values
    }

    /// Whether there is a field with this name.
    public func contains(_ name: String) -> Bool {
        var found = false
        each(named: name) { _ in found = true }
        return found
    }

    /// Appends a field, even if there is one with the same name.
    public mutating func append(_ name: String, _ value: String) {
        var fields = self.fields
        fields.append(Field(name: name, value: value))
        storage = .own(fields)
    }

    private func each(named name: String, _ body: (String) -> Void) {
        switch storage {
        case .own(let fields):
            fields.withUnsafeBufferPointer { fields in
                for index in fields.indices where equalNames(fields[index].name, name) { body(fields[index].value) }
            }
        case .aged(let result, let age):
            Headers(result).each(named: name, body)
            if equalNames(name, Self.age) { body(age) }
        case .received(let result):
            var name = name
            name.withUTF8 { wanted in
                for index in 0..<result.headerCount {
                    result.withHeader(index) { name, value in
                        if equalNames(UnsafeRawBufferPointer(wanted), name) {
                            body(String(decoding: value, as: UTF8.self))
                        }
                    }
                }
            }
        }
    }

    /// Whether the name of a field meets the condition. Copies no field, unless it was received.
    func containsName(_ isWanted: (String) -> Bool) -> Bool {
        guard case .own(let fields) = storage else { return contains { isWanted($0.name) } }
        return fields.withUnsafeBufferPointer { fields in fields.indices.contains { isWanted(fields[$0].name) } }
    }

    private static func field(_ index: Int, of result: TransferResult) -> Field {
        result.withHeader(index) {
            Field(name: String(decoding: $0, as: UTF8.self), value: String(decoding: $1, as: UTF8.self))
        }
    }
}

extension Headers: RandomAccessCollection {
    /// Always 0.
    public var startIndex: Int { 0 }

    /// The number of fields.
    public var endIndex: Int {
        switch storage {
        case .own(let fields): fields.count
        case .received(let result): result.headerCount
        case .aged(let result, _): result.headerCount + 1
        }
    }

    /// The field at this index.
    public subscript(position: Int) -> Field {
        switch storage {
        case .own(let fields): fields[position]
        case .received(let result): Self.field(position, of: result)
        case .aged(let result, let age):
            position == result.headerCount
                ? Field(name: Self.age, value: age) : Self.field(position, of: result)
        }
    }
}

extension Headers: ExpressibleByDictionaryLiteral, Equatable, CustomStringConvertible {
    /// Creates fields in the order of the literal. A name may appear more than once.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field(name: $0, value: $1) })
    }

    /// Whether the same fields are in the same order; names are compared without regard to case.
    public static func == (left: Headers, right: Headers) -> Bool {
        left.count == right.count
            && zip(left, right).allSatisfy { equalNames($0.name, $1.name) && $0.value == $1.value }
    }

    /// The names only, because values may be secret.
    public var description: String { "[" + map(\.name).joined(separator: ", ") + "]" }
}

/// Compares ASCII text without regard to case.
func equalNames(_ left: String, _ right: String) -> Bool {
    let left = left.utf8
    let right = right.utf8
    guard left.count == right.count else { return false }
    let isSame = left.withContiguousStorageIfAvailable { left in
        right.withContiguousStorageIfAvailable { equalNames(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer($0)) }
    }
    return (isSame ?? nil) ?? zip(left, right).allSatisfy { lowercased($0) == lowercased($1) }
}

func equalNames(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let start = left.baseAddress, let other = right.baseAddress else { return true }
    // Nearly always in the same case: then a compare of bytes takes a tenth of the time.
    if memcmp(start, other, left.count) == 0 { return true }
    for index in 0..<left.count where lowercased(left[index]) != lowercased(right[index]) { return false }
    return true
}

@inline(__always) func lowercased(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

extension HeaderBlock {
    /// A block of these fields.
    init(_ fields: [Headers.Field]) {
        self.init()
        for field in fields { append(field.name, field.value) }
    }

    /// Whether there is a field with this name. Does not create a field.
    func contains(_ name: StaticString) -> Bool {
        let wanted = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        return bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while rest.count >= 8 {
                let at = rest.startIndex
                let length = Int(bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self))
                let valueLength = Int(bytes.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self))
                rest = rest.dropFirst(8)
                if equalNames(UnsafeRawBufferPointer(rebasing: rest.prefix(length)), wanted) { return true }
                rest = rest.dropFirst(length + valueLength)
            }
            return false
        }
    }
}

extension Headers {
    /// The decoded fields of a block.
    package init(_ block: HeaderBlock) {
        var fields: [Field] = []
        var rest = block.bytes[...]
        while rest.count >= 8 {
            let (name, value) = (Self.length(rest), Self.length(rest.dropFirst(4)))
            rest = rest.dropFirst(8)
            let field = Field(
                name: String(decoding: rest.prefix(name), as: UTF8.self),
                value: String(decoding: rest.dropFirst(name).prefix(value), as: UTF8.self))
            fields.append(field)
            rest = rest.dropFirst(name + value)
        }
        self.init(fields)
    }

    private static func length(_ bytes: ArraySlice<UInt8>) -> Int {
        Int(bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })
    }
}

/// The header fields of the configuration, checked and packed once.
struct CommonHeaders: Sendable {
    /// For the servers of the configuration, or for every server if the configuration names none.
    private(set) var fields = Headers()
    private(set) var packed = HeaderBlock()
    /// For all other servers, without secret fields.
    private(set) var publicFields = Headers()
    private(set) var packedPublic = HeaderBlock()
    /// Those that are secret.
    private(set) var secretFields: [Headers.Field] = []

    /// Whether one of the fields affects the cache.
    private(set) var cachingWords = CachingWords.none

    /// Creates an empty list.
    init() {}

    init(_ configuration: NetworkConfiguration) throws(RequestError) {
        fields = configuration.headers
        cachingWords = CachingWords(fields)
        let declared = configuration.declaredSecrets
        for field in configuration.headers {
            try packed.appendChecked(field.name, field.value, url: "")
            if SecretHeaders.contains(field.name, declared: declared) {
                secretFields.append(field)
                continue
            }
            publicFields.append(field.name, field.value)
            packedPublic.append(field.name, field.value)
        }
    }
}

/// The method of a request (RFC 9110, 9): a standard method or any other token.
///
/// Methods are case-sensitive and sent as written. A method that is not a token (RFC 9110, 5.6.2) fails with
/// `invalidRequest(method)` before anything is sent.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The method as it is sent.
    public let rawValue: String

    /// Creates a method from any token.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a method from any token.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// Creates a method from a literal.
    public init(stringLiteral value: String) { rawValue = value }

    /// Requests a representation of a resource.
    public static var get: HTTPMethod { HTTPMethod("GET") }
    /// Requests the header fields of the response to GET, without its body.
    public static var head: HTTPMethod { HTTPMethod("HEAD") }
    /// Sends data to a resource.
    public static var post: HTTPMethod { HTTPMethod("POST") }
    /// Replaces a resource.
    public static var put: HTTPMethod { HTTPMethod("PUT") }
    /// Changes a part of a resource (RFC 5789).
    public static var patch: HTTPMethod { HTTPMethod("PATCH") }
    /// Deletes a resource.
    public static var delete: HTTPMethod { HTTPMethod("DELETE") }
    /// Requests the communication options of a resource.
    public static var options: HTTPMethod { HTTPMethod("OPTIONS") }

    /// The method as it is sent.
    public var description: String { rawValue }

    /// Whether the method is idempotent (RFC 9110, 9.2.2). An unknown method is not.
    public var isIdempotent: Bool {
        switch rawValue {
        case "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE": true
        default: false
        }
    }

    /// Whether arguments go into the query by default; with other methods they go into the body.
    var carriesArgumentsInQuery: Bool {
        switch rawValue {
        case "GET", "HEAD", "DELETE": true
        default: false
        }
    }

    /// Whether a body is expected: if there is none, an empty one is announced.
    var expectsBody: Bool {
        switch rawValue {
        case "POST", "PUT", "PATCH": true
        default: false
        }
    }

    /// GET, the most frequent method, is accepted without a look at its bytes.
    var isToken: Bool { self == .get || !rawValue.isEmpty && rawValue.utf8.allSatisfy(ByteSet.token.contains) }
}
