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
