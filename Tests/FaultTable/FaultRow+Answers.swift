extension FaultRow {
    static let framing = Area(
        "Answers that break the rules",
        [
            FaultRow(
                "R01", "fewer bytes come than `Content-Length` says",
                "no answer: the error says how many were expected and how many came"),
            FaultRow("R02", "the chunks end without the last one", "no answer, however much of it came"),
            FaultRow("R03", "the size of a chunk is no number", "no answer, and the connection is not used again"),
            FaultRow("R04", "the size of a chunk is larger than any number", "likewise"),
            FaultRow("R06", "two lengths that differ", "neither is believed, and the connection is not used again"),
            FaultRow("R08", "a length that is no number", "no answer; it is not guessed"),
            FaultRow("R09", "a length and chunks together, or a coding that nobody asked for", "no answer"),
            FaultRow(
                "R11", "a header field without a colon, with a NUL, folded, or ended by a bare line feed",
                "no answer; values beyond ASCII and empty ones are taken as they are"),
            FaultRow(
                "R13", "a body where there is none: behind 204, 304, or the answer to HEAD",
                "the body is empty, and its bytes are nobody's answer"),
            FaultRow("R14", "the first line is no status line, or another protocol is chosen", "no answer"),
            FaultRow(
                "R16", "the connection is closed before a head, inside it, or behind `100 Continue`",
                "no answer; the request may have been processed, and the error says so"),
            FaultRow(
                "R17", "the body has no length and ends with its connection",
                "an answer, which says how its end was known; it is not cached"),
            FaultRow("R18", "a reset instead of the end", "no answer"),
            FaultRow("R20", "more bytes behind a whole answer", "the answer is exact, and they are nobody's"),
            FaultRow(
                "R21", "bytes on a kept connection that nobody has asked for",
                "they never answer the next request, which goes out on a new connection"),
        ])

    static let bombs = Area(
        "Answers that are too much, or damaged",
        [
            FaultRow(
                "R23", "one header field of many kilobytes, or a line without an end", "no answer, and bounded memory"),
            FaultRow("R24", "thousands of header fields or trailers", "likewise; the bound is ``Limits/headerBytes``"),
            FaultRow("R26", "endless `100 Continue` or `103 Early Hints`", "no answer; a few are skipped"),
            FaultRow(
                "R27", "200 KB that decompress to 200 MB",
                "stopped at the bound, which is exact to the byte and holds for what is delivered"),
            FaultRow("R28", "an endless body, or chunks beyond the bound", "stopped at the bound"),
            FaultRow("R30", "a compressed body cut short, though its length agrees", "no answer"),
            FaultRow("R31", "a damaged compressed body, or bytes behind its end", "no answer"),
        ])

    static let redirects = Area(
        "Redirects",
        [
            FaultRow("R33", "a redirect to itself", "followed as often as the policy allows; the error has the way"),
            FaultRow(
                "R34", "a redirect to a file, to another scheme, or to no place at all",
                "not followed, and nothing is opened"),
            FaultRow(
                "R36", "a redirect from https to http",
                "not followed unless the policy says so, and then without the secrets"),
            FaultRow(
                "R37", "a redirect to another origin, of a request with secrets in its header",
                "none of them arrives, nor on the way back; in the same origin they go on"),
            FaultRow(
                "R39", "a redirect of a request with a body",
                "301, 302 and 303 become GET without it, 307 and 308 send it again; one that can be read once is not"),
        ])
}
