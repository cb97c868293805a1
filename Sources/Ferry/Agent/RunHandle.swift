/// What a ``RequestTask`` names: the run of a request, of a batch or of a chain.
protocol RunHandle: AnyObject, Sendable {
    var number: UInt64 { get }
    var state: RunState { get }
    var tag: String? { get }
    var metrics: RequestMetrics { get }
    /// `nil` of a request.
    var progress: GroupProgress? { get }
    var isFromCache: Bool { get }
    /// Of the body of a request.
    var meter: UploadMeter? { get }
    func cancel()
    func setPriority(_ priority: RequestPriority)
}

extension CallbackRun: RunHandle {
    var progress: GroupProgress? { nil }
}
