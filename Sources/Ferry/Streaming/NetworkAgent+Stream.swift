import FerryTransport

extension NetworkAgent {
    /// Sends a request and returns when the head of its answer has come; the body comes as it is read.
    ///
    ///     let export = try await agent.stream(Export())
    ///     for try await piece in export.body { try file.write(contentsOf: piece) }
    ///
    /// Redirects, retries, adapters and the like happen before it returns; status and content type are checked, the
    /// value and the completion hooks have no part in it. What is not accepted throws, with the first 4,096 bytes of
    /// the body. No bound holds for the body as a whole but the request's own ``Request/maxBodyBytes``. Cancelling the
    /// task that waits or reads cancels the run. Observers are told of the end when the body has ended, and the hooks
    /// for failures where it ends badly; one that is not read to its end was cancelled.
    public nonisolated(nonsending) func stream<R: Request>(
        _ request: R
    ) async throws(RequestError) -> StreamedResponse {
        try await core.stream(request, core.beginOutgoing(request))
    }
}

extension AgentCore {
    /// Not on the caller's actor.
    @concurrent
    fileprivate func stream<R: Request>(
        _ request: R, _ start: OutgoingStart
    ) async throws(RequestError) -> StreamedResponse {
        let ending = StreamEnd(of: request, start.watch)
        if case .failure(let error) = start.snapshot {
            ending.failed(error, RequestMetrics())
            throw error
        }
        let url = start.url
        let carrier = StreamCarrier(bound: request.maxBodyBytes)
        let journey = Journey(tag: request.tag, of: self)
        let itinerary = itinerary(of: request, start.snapshot, at: start.servers, url: url, watch: start.watch)
        let refusal = admit(journey, url: url)
        let answer = await withTaskCancellationHandler {
            if let refusal { return Answer.refused(refusal) }
            return await travel(itinerary, journey, after: .unsent, carrier)
        } onCancel: {
            journey.end(.cancelled)
        }
        var metrics = RequestMetrics(answer, ProcessingTimes(isMeasured: false))
        do throws(RequestError) {
            let head = try builder.response(of: answer, url: url)
            // What plays the network in tests gives answers as a whole.
            let run = carrier.run.flatMap { $0.isWhole ? nil : $0 }
            let source: Reading.Source = run.map { .run($0) } ?? .whole(head.body)
            do throws(RequestError) {
                let length = run.map { $0.contentLength(head) } ?? Int64(clamping: head.result.bodyLength)
                try builder.checkHead(head, bodyLength: length, of: request)
            } catch {
                guard let run else { throw error }
                let explained = await run.explained(error, head)
                metrics = run.metrics(head)
                throw explained
            }
            if head.isFromServer { health.succeeded(head.url) }
            return StreamedResponse(
                head: head, body: ResponseBody(Reading(source, head: head, ending, health: health)))
        } catch {
            note(error, answer, url: url)
            ending.failed(error, metrics)
            throw error
        }
    }
}

extension StreamRun {
    /// The error of an answer that was not accepted, with the first bytes of its body; or what the run was ended by
    /// while they were waited for.
    func explained(_ error: RequestError, _ head: Response) async -> RequestError {
        var body: [UInt8] = []
        reading: while body.count < RequestError.Part.most {
            switch await next() {
            case .chunk(let data): body += data
            case .end: break reading
            case .failure(let fault):
                if fault.isOwnEnd { return fault.behind(head) }
                break reading
            }
        }
        abandon(expecting: head.result.contentLength)
        return RequestError(error.code, message: error.message, response: head, body: body)
    }
}

extension RequestError {
    /// The run was ended, and neither its server nor the network has failed.
    fileprivate var isOwnEnd: Bool { [.cancelled, .shutdown, .timeout(.deadline)].contains(code) }

    /// A fault of the body behind this head, with what went before it.
    func behind(_ head: Response) -> RequestError { head.trail.map { after($0.earlier, $0.redirects) } ?? self }
}
