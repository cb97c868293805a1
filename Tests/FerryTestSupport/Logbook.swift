import Dispatch
import Ferry
import FerrySynchronization
import FerryTesting
import Glibc

/// Records what happens to runs, in order, and where.
final class Logbook: Sendable {
    /// Where code runs, as far as that is promised.
    enum Place: Sendable, Equatable {
        /// The calling thread.
        case caller
        /// The calling task, on whatever thread.
        case task
        case processing
        case callbacks
        case main
        case elsewhere
    }

    struct Entry: Sendable, Equatable, CustomStringConvertible {
        let event: String
        let place: Place
        var description: String { "\(event) @\(place)" }
    }

    @TaskLocal static var isCaller = false

    private let state = Mutex<(entries: [Entry], waiters: [(Int, CheckedContinuation<Void, Never>)])>(([], []))
    private let callerThread = Mutex<pthread_t?>(nil)
    private static let key = DispatchSpecificKey<Place>()

    /// These queues are recognised by name from here on.
    func know(processing: DispatchQueue, callbacks: DispatchQueue) {
        processing.setSpecific(key: Self.key, value: .processing)
        callbacks.setSpecific(key: Self.key, value: .callbacks)
        DispatchQueue.main.setSpecific(key: Self.key, value: .main)
    }

    /// Calls `body`; code that runs on this thread meanwhile runs in the caller's place.
    func calling<R>(_ body: () throws -> R) rethrows -> R {
        callerThread.withLock { $0 = pthread_self() }
        defer { callerThread.withLock { $0 = nil } }
        return try body()
    }

    func note(_ event: String) {
        let entry = Entry(event: event, place: place)
        let ready = state.withLock { state in
            state.entries.append(entry)
            let count = state.entries.count
            let ready = state.waiters.filter { $0.0 <= count }.map(\.1)
            state.waiters.removeAll { $0.0 <= count }
            return ready
        }
        for waiter in ready { waiter.resume() }
    }

    private var place: Place {
        if let place = DispatchQueue.getSpecific(key: Self.key) { return place }
        let current = pthread_self()
        if callerThread.withLock({ $0.map { pthread_equal($0, current) != 0 } ?? false }) { return .caller }
        return Self.isCaller ? .task : .elsewhere
    }

    var entries: [Entry] { state.withLock { $0.entries } }
    var events: [String] { entries.map(\.event) }

    /// The places where an event was recorded.
    func places(of event: String) -> [Place] { entries.filter { $0.event == event }.map(\.place) }

    /// Waits until there are this many entries.
    func waitForEntries(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.entries.count >= count { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}

extension RunOutcome {
    /// One word for the log.
    var word: String {
        switch self {
        case .finished(_, let isFromCache): isFromCache ? "cached" : "finished"
        case .failed: "failed"
        case .cancelled: "cancelled"
        }
    }
}

/// Records what it is told, and the ids of the runs.
struct LoggingObserver: RequestObserver {
    let name: String
    let book: Logbook
    let ids: Ids

    /// The id of each call, in order.
    final class Ids: Sendable {
        private let list = Mutex<[UInt64]>([])
        func append(_ id: UInt64) { list.withLock { $0.append(id) } }
        var all: [UInt64] { list.withLock { $0 } }
    }

    init(_ name: String, _ book: Logbook, ids: Ids = Ids()) {
        self.name = name
        self.book = book
        self.ids = ids
    }

    func willStart(_ run: RunInfo) {
        ids.append(run.id)
        book.note("\(name) willStart")
    }
    func willStop(_ run: RunInfo, _ outcome: RunOutcome) {
        ids.append(run.id)
        book.note("\(name) willStop \(outcome.word)")
    }
    func didStop(_ run: RunInfo, _ outcome: RunOutcome) {
        ids.append(run.id)
        book.note("\(name) didStop \(outcome.word)")
    }
    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        ids.append(run.id)
        book.note("\(name) metrics")
    }
}

/// Records all its hooks.
struct LoggedRequest: Request {
    let book: Logbook
    var path = "/x"
    var tag: String?
    var observers: [any RequestObserver] = []
    /// Thrown instead of a value.
    var fault: (any Error)?

    init(_ book: Logbook, path: String = "/x", tag: String? = nil) {
        self.book = book
        self.path = path
        self.tag = tag
    }

    func value(from response: Response) throws -> Response {
        book.note("value")
        if let fault { throw fault }
        return response
    }
    func completionPreprocessor(_ reply: Reply<Response>) { book.note("completionPreprocessor") }
    func failurePreprocessor(_ error: RequestError) { book.note("failurePreprocessor \(error.code.name)") }
    func willDeliver(_ result: Result<Reply<Response>, RequestError>) {
        switch result {
        case .success: book.note("willDeliver")
        case .failure(let error): book.note("willDeliver \(error.code.name)")
        }
    }
}

/// Records that it was called.
final class LoggingDelegate: RequestDelegate {
    private let book: Logbook
    init(_ book: Logbook) { self.book = book }

    func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {
        book.note("delegate finished, \(task.state)")
    }
    func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {
        book.note("delegate \(error.code.name), \(task.state)")
    }
}

/// Notes how runs end.
final class RunEnds: RequestObserver {
    private let outcomes = Mutex<[String]>([])

    var all: [String] { outcomes.withLock { $0 } }

    func didStop(_ run: RunInfo, _ outcome: RunOutcome) { outcomes.withLock { $0.append("\(outcome)") } }
}
