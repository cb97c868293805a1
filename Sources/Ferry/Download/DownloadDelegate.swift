/// Receives what becomes of downloads; held weakly. Called on the callback queue.
public protocol DownloadDelegate: AnyObject, Sendable {
    /// It has come further: when it begins, then at most every 100 milliseconds, and at its end. The default does
    /// nothing.
    func downloadProgressed<R: Request>(_ task: DownloadTask, _ request: R, progress: DownloadProgress)

    /// The file is there; once for each run. The default does nothing.
    func downloadFinished<R: Request>(_ task: DownloadTask, _ request: R, file: DownloadedFile)

    /// The run was cancelled or failed; once for each run. The default does nothing.
    func downloadFailed<R: Request>(_ task: DownloadTask, _ request: R, error: RequestError)
}

extension DownloadDelegate {
    /// Nothing.
    public func downloadProgressed<R: Request>(_ task: DownloadTask, _ request: R, progress: DownloadProgress) {}

    /// Nothing.
    public func downloadFinished<R: Request>(_ task: DownloadTask, _ request: R, file: DownloadedFile) {}

    /// Nothing.
    public func downloadFailed<R: Request>(_ task: DownloadTask, _ request: R, error: RequestError) {}
}
