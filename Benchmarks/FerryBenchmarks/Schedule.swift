internal import FerryMeasurement

/// An estimate of how long a run takes, from the times of its parts on a machine with two cores.
struct Schedule {
    let options: Options

    var seconds: Double {
        let cases = Case.every.filter { options.includes($0.name) }
        let rounds = Double(options.rounds)
        var sum = cases.reduce(0) { $0 + $1.seconds * Double($1.rounds(of: options.rounds)) * options.scale }
        if findsSystemCalls { sum += cases.reduce(0) { $0 + $1.secondsOfSystemCalls } }
        for special in SpecialCase.allCases where options.includes(special.rawValue) {
            sum += special.seconds * (special.isRepeated ? rounds * Double(special.timesARound) : 1)
        }
        return sum + (options.includes(Options.json) ? 3 + 4 * rounds : 0)
    }

    /// One line of information.
    var text: String {
        let minutes = (seconds / 60).rounded()
        let time = minutes < 2 ? "about \(Int(seconds.rounded(.up))) seconds" : "about \(Int(minutes)) minutes"
        let names = Options.names.filter(options.includes)
        var line =
            "\(names.count == 1 ? names[0] : "\(names.count) cases"), \(options.rounds) round\(options.rounds == 1 ? "" : "s"): \(time)"
        if options.includes(SpecialCase.cacheMillion.rawValue) {
            line += ", and 4 GB of disk for one and a half of them"
        }
        return line + ", on two quiet cores"
    }

    private var findsSystemCalls: Bool { findProgram("strace") != nil }
}
