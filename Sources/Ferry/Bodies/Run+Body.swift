import FerryTransport

extension Run {
    /// Takes over what belongs to the body of its attempt.
    func prepare(_ built: borrowing BuiltRequest) {
        source = built.source
        if let meter = built.meter { self.meter = meter }
        meter?.begin(total: built.transfer.body.length, hasBody: !built.transfer.body.isNone)
    }

    /// [loop's thread] The next bytes of its body.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        guard let source else { return .failed }
        let fill = source.fill(space)
        meter?.count(fill)
        return fill
    }

    /// [loop's thread] Its transfer has ended, and no byte of its body is wanted any more. Gives what the run is
    /// answered with.
    func closeBody(_ result: TransferResult) -> Answer {
        if let meter { meter.end(sent: result.bodyBytesSent) }
        guard let source else { return .result(result) }
        source.close()
        guard let failure = result.failure, failure.code == .uploadSource, let cause = source.failure else {
            return .result(result)
        }
        return .refused(RequestError(failure, of: result, url: url).explained(by: cause))
    }
}
