extension FaultRow {
    static let requests = Area(
        "Requests that must not be sent",
        [
            FaultRow(
                "R41", "a non-public address in any notation, where only public addresses are allowed",
                "nothing is sent; the address of the connection is checked, also after name resolution and redirects"),
            FaultRow(
                "R42", "a line break or a NUL in a method, a header field, a token, a credential or a content type",
                "nothing is sent, whatever the source of the value"),
            FaultRow("R44", "a URL with a space or a control character, or an invalid URL", "nothing is sent"),
            FaultRow("R45", "a scheme other than http and https, or no scheme", "nothing is opened"),
            FaultRow("R47", "a length or a transfer coding that does not match the body", "nothing is sent"),
            FaultRow(
                "R48", "the file or stream of a body fails, ends early, or is too long",
                "the request is broken off, so that the server never takes it for complete"),
        ])

    static let connections = Area(
        "Names, connections and proxies",
        [
            FaultRow("R49", "a closed port", "refused at once; nothing was processed"),
            FaultRow(
                "R50", "a name that does not exist",
                "the error names the lookup as the cause, however many runs wait for it"),
            FaultRow("R52", "a port that does not respond", "ended by the connect timeout, and never before it"),
            FaultRow("R53", "one address of a name refuses, another one accepts", "a response"),
            FaultRow(
                "R55", "a proxy that requires authentication, or refuses",
                "a proxy error; proxy and server get only their own credentials"),
            FaultRow(
                "R57", "proxies in the environment, exceptions, and variables that a client may have forged",
                "used only by agents that opt in; invalid settings fail before anything is sent"),
            FaultRow(
                "R118", "a name server that does not respond, queried for a hundred names",
                "other names are resolved at once, also for other agents"),
            FaultRow("R122", "many hosts, one after another", "the memory for them is bounded"),
        ])

    static let trust = Area(
        "TLS",
        [
            FaultRow("R58", "an expired certificate, or one that is not yet valid", "nothing is sent"),
            FaultRow("R59", "a certificate for another host", "nothing is sent"),
            FaultRow(
                "R60", "a certificate of an unknown authority, or a self-signed one",
                "nothing is sent, and there is no retry"),
            FaultRow("R61", "a key that is not pinned", "nothing is sent, with and without verification"),
            FaultRow("R63", "no TLS on the port, or a connection that closes during the handshake", "nothing is sent"),
            FaultRow("R64", "a handshake that stalls", "ended by the connect timeout"),
        ])

    static let slowPeers = Area(
        "Slow peers",
        [
            FaultRow(
                "R66", "silence within the head or the body",
                "ended by the idle timeout, the total timeout or the deadline"),
            FaultRow(
                "R67", "a very slow body",
                "an error if a minimum rate is set; otherwise a response as long as bytes arrive"),
            FaultRow(
                "R69", "a reader slower than the server",
                "the server has to wait, memory stays bounded, and no timeout counts the reader's time"),
            FaultRow("R70", "a server that stops reading an upload", "ended by the idle timeout"),
        ])
}
