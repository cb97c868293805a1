/// A step of a coding path that no key of the type being decoded stands for.
struct PathKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }

    /// An element of an array.
    init(position: Int) {
        stringValue = "Index \(position)"
        intValue = position
    }

    static let `super` = PathKey(stringValue: "super")
}
