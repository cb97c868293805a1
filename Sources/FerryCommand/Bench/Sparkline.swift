/// A row of values as a row of characters, each as high as its value.
enum Sparkline {
    private static let steps = Array("▁▂▃▄▅▆▇█")

    /// The last `width` values. The highest is a full block, and 0 the lowest: heights are shares, not differences.
    static func text(_ values: [Double], width: Int) -> String {
        let shown = values.suffix(max(0, width))
        let top = shown.max() ?? 0
        return String(
            shown.map { value in
                guard top > 0 else { return steps[0] }
                let share = min(max(value / top, 0), 1)
                return steps[min(steps.count - 1, Int(share * Double(steps.count)))]
            })
    }
}
