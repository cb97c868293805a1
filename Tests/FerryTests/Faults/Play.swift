/// How a run is started.
enum Way: String, CaseIterable, Sendable {
    case awaited
    case closure
}

/// What becomes of the body.
enum Form: String, CaseIterable, Sendable {
    /// It is collected, and is there with the result.
    case buffered
    /// It is read as it comes.
    case streamed
    /// It goes to a file in a directory of its own.
    case download

    /// Streams are only awaited: there is no result to bring before they are read.
    var ways: [Way] { self == .streamed ? [.awaited] : Way.allCases }
}

/// One way to play a case: a form, by await or by closure.
struct Play: CaseIterable, Sendable, CustomStringConvertible {
    var form = Form.buffered
    var way = Way.awaited

    static var allCases: [Play] { Form.allCases.flatMap(of) }

    static func of(_ form: Form) -> [Play] { form.ways.map { Play(form: form, way: $0) } }

    var description: String { "\(form), \(way)" }
}
