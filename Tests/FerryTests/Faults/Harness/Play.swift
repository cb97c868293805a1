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
    /// The answer is to be kept, and is looked for in the cache before.
    var isKept = false

    static var allCases: [Play] { Form.allCases.flatMap(of) }

    static func of(_ form: Form) -> [Play] { form.ways.map { Play(form: form, way: $0) } }

    /// Likewise, and those of a run that goes by the cache: what is collected only.
    static func andKept(_ form: Form) -> [Play] {
        of(form) + (form == .buffered ? form.ways.map { Play(form: form, way: $0, isKept: true) } : [])
    }

    var description: String { "\(form), \(way)\(isKept ? ", kept" : "")" }
}
