/// A step of a coding path that no key of the type being decoded stands for.
///
/// Small enough for an existential without an allocation: paths are made for each error.
struct PathKey: CodingKey {
    private enum Kind {
        case name(String)
        /// A key of a dictionary, which is an integer too if it reads like one.
        case member(String)
        case integer(Int)
        case position(Int)
    }

    private let kind: Kind

    private init(_ kind: Kind) { self.kind = kind }

    init(stringValue: String) { kind = .name(stringValue) }
    init(intValue: Int) { kind = .integer(intValue) }

    /// A key of a dictionary.
    init(member: String) { kind = .member(member) }

    /// An element of an array.
    init(position: Int) { kind = .position(position) }

    var stringValue: String {
        switch kind {
        case .name(let name), .member(let name): name
        case .integer(let integer): "\(integer)"
        case .position(let position): "Index \(position)"
        }
    }

    var intValue: Int? {
        switch kind {
        case .name: nil
        case .member(let name): Int(name)
        case .integer(let integer), .position(let integer): integer
        }
    }

    static let `super` = PathKey(stringValue: "super")
}
