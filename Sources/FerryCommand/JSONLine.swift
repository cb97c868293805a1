internal import FoundationEssentials

/// A report on one line, fields in alphabetical order. Without the end of the line.
func jsonLine(_ report: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(report) else { preconditionFailure("a report is always JSON") }
    return String(decoding: data, as: UTF8.self)
}
