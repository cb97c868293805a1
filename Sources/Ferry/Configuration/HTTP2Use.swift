import FerryTransport

/// When HTTP/2 (RFC 9113) is spoken.
///
/// It is off unless it is asked for: libcurl before 8.0 may take a cut off body without a length for a whole one under
/// load, and on a fast network one connection of 100 streams is slower than 64 connections of HTTP/1.1.
public enum HTTP2Use: Sendable, Hashable {
    /// Never.
    case never
    /// Over TLS, with servers that offer it (ALPN); HTTP/1.1 with all others.
    case negotiated
    /// With every server, also without TLS and without asking. One that does not speak it fails the run.
    case priorKnowledge
}

/// What carries requests over HTTP/1.1.
public enum TransferEngine: Sendable, Hashable {
    /// libcurl carries every request.
    case libcurl
    /// Ferry's own HTTP/1.1 engine carries every request that it can, at about half the CPU time. It is new: measure
    /// and test before you rely on it.
    ///
    /// libcurl carries the rest: HTTP/2, plain requests through an HTTP proxy, requests with credentials
    /// for challenges (Digest, NTLM, Negotiate, and Basic on demand), and all requests of an agent that keeps cookies.
    /// ``RequestMetrics/engine`` tells which one carried a run.
    case automatic

    /// The default of ``NetworkConfiguration/engine``: ``libcurl``, unless the environment variable `FERRY_ENGINE` is
    /// `automatic`. An operator can so change the engine of a service without a new build. The variable is read once.
    public static var standard: TransferEngine {
        TransportConfiguration.Engine.standard == .http1 ? .automatic : .libcurl
    }
}
