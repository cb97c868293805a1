internal import Ferry

/// `--verbose`: what the engine says of a run, heads included, and where the connection led.
struct FetchLog: LogSink, RequestObserver {
    let minimumLevel = LogLevel.trace
    private let lines = FileHandleLogSink(descriptor: 2, minimumLevel: .trace)

    func log(_ entry: LogEntry) { lines.log(entry) }

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        guard let peer = metrics.peer else { return }
        let way = metrics.isReusedConnection ? "kept connection" : "new connection"
        let version = metrics.httpVersion.map { " by \($0)" } ?? ""
        let bytes = "\(metrics.bytesSent) bytes sent, \(metrics.bytesReceived) received"
        log(LogEntry(.debug, "\(way) to \(peer.address) port \(peer.port)\(version): \(bytes)", run: run))
    }
}
