internal import Ferry

/// What is wrong with a plan, or cannot be made of it.
struct PlanFault: Error, CustomStringConvertible {
    let description: String
    /// The string of the file that it is about; the file knows the line.
    let origin: JSON?

    init(_ description: String, at origin: JSON? = nil) {
        self.description = description
        self.origin = origin
    }
}

extension JSONFile {
    /// Without a line when it has nothing to do with one string of the file.
    func fault(_ fault: PlanFault) -> InputError {
        guard let origin = fault.origin else { return InputError("\(path): \(fault.description)") }
        return self.fault(origin, fault.description)
    }
}
