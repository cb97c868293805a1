/// The options and operands of one command line, in the order given.
struct ParsedArguments: Sendable {
    var options: [(name: String, value: String)] = []
    var operands: [String] = []

    func has(_ name: String) -> Bool {
        options.contains { $0.name == name }
    }

    /// All the values of an option that may be repeated.
    func all(_ name: String) -> [String] {
        options.filter { $0.name == name }.map(\.value)
    }

    /// The value of an option; the last one counts, so that an alias can be overruled.
    func last(_ name: String) -> String? {
        options.last { $0.name == name }?.value
    }
}
