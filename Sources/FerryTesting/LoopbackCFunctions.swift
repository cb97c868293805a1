internal import CLoopback

// The functions that C calls, all on the server's thread, and the context they are called with.
//
// The context is a `LoopbackCallbacks` that `Unmanaged` has retained before the server started. It is released once:
// by `loopbackOnStopped`, after which C calls nothing, or by `releaseContext` when the server did not start and so
// never calls anything.

func retainedContext(_ callbacks: LoopbackCallbacks) -> UnsafeMutableRawPointer {
    Unmanaged.passRetained(callbacks).toOpaque()
}

func releaseContext(_ context: UnsafeMutableRawPointer?) {
    guard let context else { return }
    Unmanaged<LoopbackCallbacks>.fromOpaque(context).release()
}

private func callbacks(_ context: UnsafeMutableRawPointer?) -> LoopbackCallbacks {
    guard let context else { preconditionFailure("the loopback server was started without its context") }
    return Unmanaged<LoopbackCallbacks>.fromOpaque(context).takeUnretainedValue()
}

/// Never blocks the server: the handler runs in a task of its own, and answers from there.
func loopbackOnRequest(
    _ context: UnsafeMutableRawPointer?, _ id: UInt64, _ number: UInt64, _ request: UnsafePointer<loopback_request>
) {
    let callbacks = callbacks(context)
    guard let handler = callbacks.handler(number) else {
        callbacks.answer(id, LoopbackResponse(status: 503))
        return
    }
    let request = LoopbackRequest(request.pointee)
    Task { callbacks.answer(id, await handler(request)) }
}

func loopbackOnReached(_ context: UnsafeMutableRawPointer?, _ watch: UInt64) {
    callbacks(context).reached(watch: watch)
}

func loopbackOnStopped(_ context: UnsafeMutableRawPointer?) {
    callbacks(context).stop()
    releaseContext(context)
}

/// Copies the recorded requests; the visitor is called on this thread, before this returns.
func loopbackRequests(_ server: OpaquePointer) -> [LoopbackRequest] {
    var found: [LoopbackRequest] = []
    withUnsafeMutablePointer(to: &found) { list in
        loopback_requests(server, list, loopbackOnVisit)
    }
    return found
}

private func loopbackOnVisit(_ context: UnsafeMutableRawPointer?, _ request: UnsafePointer<loopback_request>) {
    context?.assumingMemoryBound(to: [LoopbackRequest].self).pointee.append(LoopbackRequest(request.pointee))
}
