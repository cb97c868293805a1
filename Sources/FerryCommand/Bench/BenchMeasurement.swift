/// What conditions may be about.
protocol BenchMeasurement {
    /// What a share is a share of.
    var requests: UInt64 { get }

    func value(of figure: BenchThreshold.Figure) -> Double
}

extension BenchReport: BenchMeasurement {
    func value(of figure: BenchThreshold.Figure) -> Double {
        switch figure.name {
        case "rps": rps
        case "requests": Double(requests)
        case "failed": Double(failed)
        case "wrong": Double(wrongBodies)
        case "cpu": cpu.values.reduce(0, +)
        case "memory": Double(memory)
        case "connections": Double(connections)
        default: latency[figure.name] ?? 0
        }
    }
}
