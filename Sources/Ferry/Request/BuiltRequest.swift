import FerryTransport

/// A request made concrete: ready for the transport. It is handed on, never copied: it is large.
struct BuiltRequest: ~Copyable, Sendable {
    var transfer: TransferRequest
    /// What gives out its body, where that is pulled. One of an attempt that is not made closes itself when it goes.
    var source: (any BodySource)?
    /// False when it is only to be looked at: then no file is opened, and no stream is taken.
    var opensBody = true
    /// The body that is pulled, with the arguments that go into it.
    var pulled: RequestBody?
    /// What the request says of sending it twice, whatever its headers say.
    var isIdempotent = true
    /// Its own headers name the type of its body.
    var ownsContentType = false
    /// Counts the body as it is sent, where somebody may ask.
    var meter: UploadMeter?
}

/// A request as it was read when its run began: what every attempt of the run is made of. Its members are not read
/// again, as one that computes them may say something else each time; an `Idempotency-Key` above all must be the same
/// in every attempt. Only adapters and the authenticator add to it.
struct RequestSnapshot: Sendable {
    /// As it is sent where nobody changes it. A body that is pulled is not open.
    let transfer: TransferRequest
    private let pulled: RequestBody?
    fileprivate let isIdempotent: Bool
    private let ownsContentType: Bool

    init(_ built: borrowing BuiltRequest) {
        transfer = built.transfer
        pulled = built.pulled
        isIdempotent = built.isIdempotent
        ownsContentType = built.ownsContentType
    }

    /// In the form that adapters change.
    var outgoing: OutgoingRequest {
        let body: RequestBody? =
            switch transfer.body {
            case .none: nil
            case .bytes(let bytes): .bytes(bytes)
            case .data(let data): .data(data)
            case .pull: pulled
            }
        var outgoing = OutgoingRequest(
            method: HTTPMethod(transfer.method), url: transfer.url, headers: Headers(transfer.headers), body: body)
        // A type among the headers of its own was meant for whatever body it has.
        if body != nil, !ownsContentType { outgoing.noteBodyType() }
        return outgoing
    }

    /// As it is sent where nobody changes it, with its body open.
    func open() throws(RequestError) -> BuiltRequest {
        var built = BuiltRequest(transfer: transfer)
        guard let pulled else { return built }
        switch pulled.content {
        case .pulled(let body): try built.pull(body, of: pulled)
        case .multipart(let form): try built.pull(form, of: pulled)
        case .data, .bytes, .string, .json: break
        }
        return built
    }

    /// Whether its body is read as it is sent.
    var isPulled: Bool { pulled != nil }

    /// What it is with another method, URL, header and body: all else that the request says.
    func with(_ outgoing: OutgoingRequest, to url: String) -> BuiltRequest {
        var built = BuiltRequest(transfer: transfer)
        built.transfer.url = url
        built.transfer.method = outgoing.method.rawValue
        built.transfer.body = .none
        built.transfer.credentials = nil
        // What the request says of sending it twice, it says of the method it describes.
        built.transfer.isIdempotent =
            outgoing.method.rawValue == transfer.method ? isIdempotent : outgoing.method.isIdempotent
        return built
    }
}
