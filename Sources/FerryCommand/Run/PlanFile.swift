internal import Ferry
internal import FerryJSON
internal import FoundationEssentials

/// The text that a plan was read from, to say where in it something is wrong.
struct PlanFile: Sendable {
    let path: String
    let text: Data

    /// By file and line, as compilers do.
    func fault(_ place: JSON, _ message: String) -> InputError {
        let offset = text.withUnsafeBytes { place.offset(in: $0) } ?? 0
        return InputError("\(path):\(line(of: offset)): \(message)")
    }

    /// Without a line when it has nothing to do with one string of the file.
    func fault(_ fault: PlanFault) -> InputError {
        guard let origin = fault.origin else { return InputError("\(path): \(fault.description)") }
        return self.fault(origin, fault.description)
    }

    /// Counted from 1.
    func line(of offset: Int) -> Int { 1 + text.prefix(offset).count { $0 == UInt8(ascii: "\n") } }
}
