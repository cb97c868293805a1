import Dispatch
import FerryTransport

extension BuiltRequest {
    /// Has the body pulled from a new source. `whole` is the body as an adapter may see it.
    mutating func pull(_ body: some PulledBody, of whole: RequestBody) throws(RequestError) {
        pulled = whole
        guard opensBody else {
            transfer.body = .pull(length: nil)
            return
        }
        do throws(BodyFault) {
            let source = try body.makeSource()
            transfer.body = .pull(length: source.length)
            self.source = source
        } catch {
            throw RequestError(error, url: transfer.url)
        }
    }
}

extension TransferRequest.Body {
    var isNone: Bool { if case .none = self { true } else { false } }

    /// `nil` where it is not known beforehand; nothing is 0 long.
    var length: UInt64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): UInt64(bytes.count)
        case .data(let data): UInt64(data.count)
        case .pull(let length): length
        }
    }
}

extension UploadMeter {
    /// `nil` where there is nothing to count and nobody to tell.
    convenience init?(of transfer: borrowing TransferRequest, on queue: DispatchQueue, _ report: Report?) {
        if report == nil && transfer.body.length == 0 { return nil }
        self.init(on: queue, report)
    }
}
