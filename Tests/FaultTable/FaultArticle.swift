import FoundationEssentials

/// The page of the manual, made of the cases and of what the tests noted of them.
public struct FaultArticle {
    private let notes: [String: [FaultNote]]

    /// From the notes of a run of the tests.
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

    /// Those that it was played in, and why it was not in the others.
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

        What Ferry does when the other side, the network, the disk or the caller misbehaves.

        ## Overview

        Whatever comes, a run ends once, in time, and with an answer that is whole or an error that says what happened.
        The tables below are made by Ferry's own tests: each line is a case that is played against a server which sends
        exactly these bytes, in the forms that are named: collected in memory (`buffered`; with and without a
        <doc:Caching> policy), read as it comes (`streamed`, see <doc:Streaming>), or into a file (`download`, see
        <doc:Downloads>); by `await` and by closure. The codes are those of <doc:Errors>, with the ``RequestPhase`` they
        are found in; `as promised` stands for tests that are no single run. A number stands at the front of the names of
        the tests that play the case.

        ## What holds in every case

        1. There is exactly one result, a success or a typed error, and no callback after it.
        2. File descriptors, handles of the loop, transfers and tasks are back to where they were.
        3. No part of a file stands under its final name, and none in the cache.
        4. The next request through the same agent succeeds.
        5. Memory stays bounded, and the run ends no later than its deadline says.
        6. No secret is found in logs, errors, metrics, commands for curl or the cache's metadata.
        7. An error has its code, its phase, the bytes sent and received, the attempts, a URL without secrets, and says
           whether the server may have acted on the request.
        """
}
