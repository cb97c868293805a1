import FerryTransport

extension RedirectMachine {
    /// The values of all `Location` fields of an answer, as they came.
    static func locations(of result: TransferResult) -> [[UInt8]] {
        var found: [[UInt8]] = []
        for index in 0..<result.headerCount {
            result.withHeader(index) { name, value in
                guard name.count == 8, equalNames(String(decoding: name, as: UTF8.self), "Location") else { return }
                found.append(Array(value))
            }
        }
        return found
    }
}
