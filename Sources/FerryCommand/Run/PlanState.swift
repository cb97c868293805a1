internal import Ferry
internal import FoundationEssentials
internal import Glibc
internal import Synchronization

/// The values of a plan that runs: variables, what was captured, and the last answer of each request.
final class PlanState: Sendable {
    private struct State {
        var values: [String: JSON] = [:]
        var answers: [String: Response] = [:]
        var counter = 0
    }

    private let state = Mutex(State())

    /// Each variable is made of those before it. Given ones are not made, nor are those that are kept of an earlier
    /// run.
    init(
        variables: [(name: String, value: PlanJSON)], overruledBy given: [(name: String, value: String)],
        keeping kept: [(name: String, value: JSON)] = []
    ) throws(PlanFault) {
        var ready: [String: JSON] = [:]
        for (name, value) in kept { ready[name] = value }
        for (name, value) in given { ready[name] = JSON(value) }
        state.withLock { [ready] in $0.values = ready }
        for (name, value) in variables where ready[name] == nil {
            let made = try json(value)
            state.withLock { $0.values[name] = made }
        }
    }

    /// Variables and captured values, as they are now.
    func values(of names: Set<String>) -> [String: JSON] {
        state.withLock { $0.values.filter { names.contains($0.key) } }
    }

    func capture(_ value: JSON, as name: String) { state.withLock { $0.values[name] = value } }

    func answered(_ name: String, _ response: Response) { state.withLock { $0.answers[name] = response } }

    // MARK: Filling in

    func text(_ template: PlanTemplate) throws(PlanFault) -> String {
        var text = ""
        for part in template.parts {
            switch part {
            case .text(let piece): text += piece
            case .place(let place): text += plain(try value(of: place))
            }
        }
        return text
    }

    func json(_ template: PlanJSON) throws(PlanFault) -> JSON {
        switch template {
        case .constant(let json): return json
        case .text(let text):
            if let place = text.onlyPlace { return try value(of: place) }
            return JSON(try self.text(text))
        case .array(let elements):
            var made: [JSON] = []
            for element in elements { made.append(try json(element)) }
            return JSON(made)
        case .object(let members):
            var made: [(String, JSON)] = []
            for (key, value) in members { made.append((key, try json(value))) }
            return JSON(members: made)
        }
    }

    /// A string as it is, everything else as JSON.
    private func plain(_ json: JSON) -> String { json.string ?? json.description }

    func value(of place: PlanPlace) throws(PlanFault) -> JSON {
        if let found = find(place.words) { return found }
        if let fallback = place.fallback { return JSON(fallback) }
        throw PlanFault("'{{\(place.description)}}' has no value", at: place.origin)
    }

    private func find(_ words: [String]) -> JSON? {
        let first = words[0]
        if first == "env" { return getenv(words.dropFirst().joined(separator: ".")).map { JSON(String(cString: $0)) } }
        if first == "new" {
            return PlanGenerator(rawValue: words.dropFirst().joined(separator: ".")).map(generated)
        }
        let (value, answer) = state.withLock { ($0.values[first], $0.answers[first]) }
        if let value { return inside(value, words.dropFirst()) }
        guard let answer, let part = words.dropFirst().first.flatMap(PlanAnswerPart.init(rawValue:)) else { return nil }
        switch part {
        case .status: return JSON(answer.status)
        case .text: return JSON(answer.text)
        case .headers: return answer.headers[words.dropFirst(2).joined(separator: ".")].map { JSON($0) }
        case .json: return (try? answer.json).flatMap { inside($0, words.dropFirst(2)) }
        }
    }

    private func inside(_ json: JSON, _ words: ArraySlice<String>) -> JSON? {
        var place = json
        for word in words {
            let next = place.array != nil ? Int(word).flatMap { $0 < 0 ? nil : place[$0] } : place[word]
            guard let next else { return nil }
            place = next
        }
        return place
    }

    private func generated(_ kind: PlanGenerator) -> JSON {
        switch kind {
        case .uuid: JSON(UUID().uuidString.lowercased())
        case .time: JSON(Int(time(nil)))
        case .number: JSON(Int.random(in: 0...999_999_999))
        case .counter:
            JSON(
                state.withLock { state in
                    state.counter += 1
                    return state.counter
                })
        }
    }
}
