internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// The lines on a terminal that show how downloads go: one for each that is under way, below those that have ended.
final class DownloadBoard: Sendable {
    private struct Row: Sendable {
        var number: Int
        var name: String
        var progress: DownloadProgress?
    }

    private struct State {
        var rows: [Row] = []
        var count = 0
        var picture = LivePicture()
    }

    private let state = Mutex(State())

    /// Takes a line; returns its number.
    func enter(_ name: String) -> Int {
        state.withLock { state in
            state.count += 1
            state.rows.append(Row(number: state.count, name: Main.oneLine(name)))
            return state.count
        }
    }

    func update(_ number: Int, _ progress: DownloadProgress) {
        state.withLock { state in
            guard let index = state.rows.firstIndex(where: { $0.number == number }) else { return }
            state.rows[index].progress = progress
        }
    }

    /// Its line becomes its result, which stays.
    func leave(_ report: DownloadReport) {
        let width = Console.size.columns
        draw { state in
            guard let index = state.rows.firstIndex(where: { $0.number == report.row }) else { return [] }
            let row = state.rows.remove(at: index)
            return [ProgressLine.result(row.name, report, width: width)]
        }
    }

    /// Until its task is cancelled; ten pictures a second.
    func show() async {
        while !Task.isCancelled {
            draw { _ in [] }
            try? await Task.sleep(for: .milliseconds(100))
        }
        draw { state in
            state.rows = []
            return []
        }
    }

    /// Puts out the lines that stay, and below them those of all that are under way.
    private func draw(_ change: (inout State) -> [String]) {
        let size = Console.size
        state.withLock { state in
            let stays = change(&state)
            let room = max(size.rows - 1, 1)
            var lines = state.rows.prefix(state.rows.count > room ? room - 1 : room).map { row in
                ProgressLine.underWay(row.name, row.progress, width: size.columns)
            }
            if state.rows.count > lines.count { lines.append("and \(state.rows.count - lines.count) more") }
            state.picture.draw(lines, below: stays)
        }
    }
}
