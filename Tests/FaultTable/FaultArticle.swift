import FoundationEssentials

/// The page of the manual, made from the cases and the notes of their tests.
public struct FaultArticle {
    private let notes: [String: [FaultNote]]

    /// Makes the page from the notes of a run of the tests.
    public init(_ notes: [FaultNote]) { self.notes = Dictionary(grouping: notes, by: \.row) }

    /// The whole page, in Markdown.
    public var text: String {
        let tables = FaultRow.areas.map { area in
            """
            ## \(area.title)

            | case | what happens | what Ferry does | outcome | forms |
            |---|---|---|---|---|
            \(area.rows.map(line).joined(separator: "\n"))
            """
        }
        return ([Self.introduction] + tables).joined(separator: "\n\n") + "\n"
    }

    private func line(_ row: FaultRow) -> String {
        let notes = notes[row.number, default: []]
        let outcomes = Set(notes.compactMap(\.outcome)).sorted().joined(separator: "; ")
        return "| \(row.number) | \(row.setup) | \(row.promise) | \(outcomes) | \(forms(notes)) |"
    }

    /// The forms that the case was played in, and why it was not played in the others.
    private func forms(_ notes: [FaultNote]) -> String {
        let order = ["buffered", "streamed", "download"]
        let played = Set(notes.filter { $0.outcome != nil }.compactMap(\.form))
        let omitted = Dictionary(
            notes.compactMap { note in note.form.flatMap { form in note.reason.map { (form, $0) } } },
            uniquingKeysWith: { first, _ in first })
        return order.compactMap { form in
            played.contains(form) ? form : omitted[form].map { "no \(form): \($0)" }
        }.joined(separator: ", ")
    }

    private static let introduction = """
        # Faults

        What Ferry does when the server, the network, the disk or the caller misbehaves.

        ## Overview

        In every case a run ends once and in time, with a complete response or with an error that says what happened.
        Ferry's own tests generate the tables below. Each row is a case that is played against a server that sends
        exactly these bytes, in the forms that the last column names: collected in memory (`buffered`; with and without
        a <doc:Caching> policy), read as it arrives (`streamed`, see <doc:Streaming>), or written to a file
        (`download`, see <doc:Downloads>); with `await` and with closures. The codes are those of <doc:Errors>, with
        the ``RequestPhase`` of the error. `response` means that the run succeeds, and `as described` stands for tests
        that consist of more than a single run. The names of the tests that play a case begin with its number.

        ## What holds in every case

        1. There is exactly one result, a success or a typed error, and no callback after it.
        2. File descriptors, event loop handles, transfers and tasks are back to their number before the run.
        3. No partial file has its final name, and no partial response is in the cache.
        4. The next request through the same agent succeeds.
        5. Memory stays bounded, and the run ends no later than its deadline.
        6. No secret appears in logs, errors, metrics, curl commands or the metadata of the cache.
        7. An error has its code, its phase, the bytes sent and received, the attempts, and a URL without secrets. It
           says whether the server may have processed the request.
        """
}
