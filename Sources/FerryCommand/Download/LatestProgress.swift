internal import Ferry
internal import Synchronization

/// The last that was told of a download.
final class LatestProgress: Sendable {
    private let latest = Mutex<DownloadProgress?>(nil)

    var value: DownloadProgress? { latest.withLock { $0 } }
    func set(_ progress: DownloadProgress) { latest.withLock { $0 = progress } }
}
