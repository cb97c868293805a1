/// All measurements of a run, by case and rival, in rounds.
struct ResultTable {
    struct Key: Hashable {
        var name: String
        var rival: Rival
    }

    private(set) var rounds: [Key: [Measurement]] = [:]
    private(set) var systemCalls: [Key: Double] = [:]
    /// `nil` if it was not measured.
    var json: JSONFigures?
    /// In the order of measuring.
    private(set) var cases: [String] = []

    mutating func add(_ measurement: Measurement, case name: String, rival: Rival) {
        if !cases.contains(name) { cases.append(name) }
        rounds[Key(name: name, rival: rival), default: []].append(measurement)
    }

    mutating func setSystemCalls(_ count: Double, case name: String, rival: Rival) {
        systemCalls[Key(name: name, rival: rival)] = count
    }

    subscript(name: String, rival: Rival) -> [Measurement] {
        rounds[Key(name: name, rival: rival)] ?? []
    }

    func rivals(of name: String) -> [Rival] {
        Rival.allCases.filter { !self[name, $0].isEmpty }
    }

    /// The median over the rounds; `nil` if it was not measured.
    func median(_ name: String, _ rival: Rival, _ figure: (Measurement) -> Double) -> Double? {
        Self.median(self[name, rival].map(figure))
    }

    /// The median of the ratios of each round, whose sides were measured under the same conditions.
    func ratio(
        _ name: String, _ rival: Rival, to other: String, _ otherRival: Rival, _ figure: (Measurement) -> Double
    ) -> Double? {
        let pairs = zip(self[name, rival], self[other, otherRival])
        return Self.median(pairs.compactMap { figure($1) > 0 ? figure($0) / figure($1) : nil })
    }

    /// The reference for ratios.
    func reference(of name: String) -> Rival {
        self[name, .bare].isEmpty ? .await : .bare
    }

    static func median(_ values: [Double]) -> Double? {
        if values.isEmpty { return nil }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}
