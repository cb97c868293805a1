internal import CLoopback

/// Owns the C server: made once, freed once.
///
/// `@unchecked Sendable` is true because the pointer never changes and every function of CLoopback.h but the last
/// one, `loopback_free`, may be called from any thread; that one is called by `deinit`, when no other call can be
/// under way.
final class LoopbackHandle: @unchecked Sendable {
    let pointer: OpaquePointer
    private let callbacks: LoopbackCallbacks

    init(_ options: LoopbackServer.Options, _ callbacks: LoopbackCallbacks) throws(LoopbackError) {
        var made: OpaquePointer?
        let result = options.address.withCString { address in
            options.applicationProtocols.joined(separator: ",").withCString { protocols in
                var c = loopback_options(
                    context: retainedContext(callbacks),
                    on_request: loopbackOnRequest, on_reached: loopbackOnReached, on_stopped: loopbackOnStopped,
                    address: address, port: options.port, accept: options.accepting.code,
                    certificate: options.certificate?.pointer, protocols: protocols,
                    demands_certificate: options.demandsClientCertificate ? 1 : 0,
                    minimum_tls: Int32(options.tlsVersions.lowerBound),
                    maximum_tls: Int32(options.tlsVersions.upperBound),
                    record_limit: UInt32(clamping: options.recordedRequests),
                    record_body_limit: UInt32(clamping: options.recordedBodyBytes),
                    max_body: UInt64(clamping: options.maximumBodyBytes))
                let result = loopback_start(&c, &made)
                // A server that did not start calls nothing, so it does not give the context back.
                if result != 0 { releaseContext(c.context) }
                return result
            }
        }
        guard let made else { throw .start(result) }
        pointer = made
        self.callbacks = callbacks
        callbacks.attach(UInt(bitPattern: made))
    }

    deinit {
        // Handlers may still be at work; their answers are nothing from here on.
        callbacks.attach(0)
        loopback_free(pointer)
    }
}
