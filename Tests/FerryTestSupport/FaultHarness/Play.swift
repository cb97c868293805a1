/// How a run is started.
enum Way: String, CaseIterable, Sendable {
    case awaited
    case closure
}

/// What happens with the body.
enum Form: String, CaseIterable, Sendable {
    /// It is collected, and delivered with the result.
    case buffered
    /// It is streamed.
    case streamed
    /// It is written to a file in a directory of its own.
    case download

    /// Streams are only awaited: before they are read there is no result to deliver.
    var ways: [Way] { self == .streamed ? [.awaited] : Way.allCases }
}

/// One way to play a case: a form, by await or by closure.
struct Play: CaseIterable, Sendable, CustomStringConvertible {
    var form = Form.buffered
    var way = Way.awaited
    /// The response is to be stored, and the cache is searched first.
    var isKept = false

    static var allCases: [Play] { Form.allCases.flatMap(of) }

    static func of(_ form: Form) -> [Play] { form.ways.map { Play(form: form, way: $0) } }

    /// All ways, and those through the cache: collected bodies only.
    static func andKept(_ form: Form) -> [Play] {
        of(form) + (form == .buffered ? form.ways.map { Play(form: form, way: $0, isKept: true) } : [])
    }

    var description: String { "\(form), \(way)\(isKept ? ", kept" : "")" }
}
