package import FerryTransport

/// Times and bytes of one run. A time that is `nil` stands for something that did not happen.
public struct RequestMetrics: Sendable, Hashable {
    /// From the start of the run until it left the queue.
    public var queue: Duration
    /// From there until the name was known.
    public var nameLookup: Duration?
    /// From there until a connection stood; `nil` on a kept one.
    public var connect: Duration?
    /// From there until TLS stood; `nil` likewise.
    public var tls: Duration?
    /// From there until the first byte of the answer.
    public var firstByte: Duration?
    /// From the start of the run until its end.
    public var total: Duration
    /// Head and body of the request.
    public var bytesSent: UInt64
    /// Head and body of the answer, before decoding.
    public var bytesReceived: UInt64

    package init(_ result: TransferResult) {
        let times = result.metrics
        func time(_ value: UInt32) -> Duration? { value == 0 ? nil : .microseconds(Int64(value)) }
        queue = .microseconds(Int64(times.queue))
        nameLookup = time(times.name)
        connect = time(times.connect)
        tls = time(times.tls)
        firstByte = time(times.firstByte)
        total = .microseconds(Int64(times.total))
        bytesSent = result.headBytesSent + result.bodyBytesSent
        bytesReceived = result.headBytesReceived + result.bodyBytesReceived
    }
}
