extension FaultRow {
    static let requests = Area(
        "Requests that must not be sent",
        [
            FaultRow(
                "R41", "only public addresses are allowed, and one is asked for that is none, however it is written",
                "nothing is sent; the address connected to is looked at, behind names and redirects too"),
            FaultRow(
                "R42", "a line break or a NUL in a method, a header field, a token, a credential or a content type",
                "nothing is sent, whoever has put it there"),
            FaultRow("R44", "a URL with a space or a control character, or that is none", "nothing is sent"),
            FaultRow("R45", "another scheme than http and https, or none", "nothing is opened"),
            FaultRow("R47", "a length or a transfer coding that is not the body's", "nothing is sent"),
            FaultRow(
                "R48", "the file or stream of a body fails, ends early, or is too long",
                "the message is broken off, so that the server never takes it for a whole one"),
        ])

    static let connections = Area(
        "Names, connections and proxies",
        [
            FaultRow("R49", "a port that is closed", "refused at once; nothing was processed"),
            FaultRow("R50", "a name that is not there", "the cause is the name's, however many wait for it"),
            FaultRow("R52", "a port that does not answer", "ended by the timeout of the connection, and never early"),
            FaultRow("R53", "one address of a name is refused, another one serves", "answered"),
            FaultRow(
                "R55", "a proxy that wants to know who asks, or that refuses",
                "an error of the proxy; each side gets its own credentials and none of the other's"),
            FaultRow(
                "R57", "proxies in the environment, exceptions, and variables that a client may have forged",
                "asked only by those who opt in; what makes no sense fails before anything is sent"),
            FaultRow(
                "R118", "a name server that does not answer, asked for a hundred names",
                "other names are found at once, by other agents too"),
            FaultRow(
                "R122", "many hosts, one after another",
                "what is remembered of them is bounded"),
        ])

    static let trust = Area(
        "TLS",
        [
            FaultRow("R58", "a certificate of another time", "nothing is sent"),
            FaultRow("R59", "a certificate of another host", "nothing is sent"),
            FaultRow(
                "R60", "a certificate of an unknown authority, or signed by itself", "nothing is sent, nor tried again"),
            FaultRow("R61", "a key that is not pinned", "nothing is sent, with and without verification"),
            FaultRow("R63", "no TLS on the port, or the end inside the handshake", "nothing is sent"),
            FaultRow("R64", "a handshake that does not go on", "ended by the timeout of the connection"),
        ])

    static let slowPeers = Area(
        "Slow peers",
        [
            FaultRow("R66", "silence inside the head or the body", "ended by the idle, total or deadline time"),
            FaultRow(
                "R67", "a body that crawls",
                "a fault where a rate was asked for; else an answer as long as it is alive"),
            FaultRow(
                "R69", "a reader slower than the server",
                "the server has to wait, memory stays bounded, and no timeout counts the reader's time"),
            FaultRow("R70", "a server that stops reading an upload", "ended by the idle time"),
        ])
}
