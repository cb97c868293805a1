internal import Ferry

/// `--events`: prints server-sent events as they come.
enum FetchEvents {
    private struct Line: Encodable {
        let event: String
        let data: String
        let id: String

        init(_ event: ServerSentEvent) { (self.event, data, id) = (event.event, event.data, event.id) }
    }

    /// Ends when the server ends the stream for good, or nobody gets the output any more.
    static func print(_ plan: FetchPlan, by agent: NetworkAgent, to writer: FetchWriter) async -> FetchVerdict {
        var events = agent.events(plan.request, reconnection: plan.reconnection).makeAsyncIterator()
        defer { writer.end() }
        do throws(RequestError) {
            while let event = try await events.next() {
                let text = plan.printsJSON ? jsonLine(Line(event)) + "\n" : text(of: event)
                Array(text.utf8).withUnsafeBytes(writer.body)
                if writer.hasEnded { break }
            }
            return FetchVerdict(status: 200) { _ in true }
        } catch {
            if error.is(.invalidStatusCode), let status = error.response?.status {
                return FetchVerdict(status: status) { _ in false }
            }
            return FetchVerdict(error, of: plan.request)
        }
    }

    /// As the server has sent it: `event:` unless it is a message, `id:` if it has one, a `data:` for each line.
    private static func text(of event: ServerSentEvent) -> String {
        var lines: [String] = []
        if event.event != "message" { lines.append("event: \(event.event)") }
        if !event.id.isEmpty { lines.append("id: \(event.id)") }
        lines += event.data.split(separator: "\n", omittingEmptySubsequences: false).map { "data: \($0)" }
        return lines.joined(separator: "\n") + "\n\n"
    }
}
