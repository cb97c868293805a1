/// The output of the curl command for many exchanges: a line with status and length for each.
enum CurlLines {
    static func measurement(_ output: String, length: Int) -> Measurement {
        var measurement = Measurement()
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2 else { continue }
            if words[0] == "200" && words[1] == "\(length)" { measurement.ok += 1 } else { measurement.wrong += 1 }
        }
        return measurement
    }
}
