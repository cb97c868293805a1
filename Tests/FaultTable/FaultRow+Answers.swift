extension FaultRow {
    static let framing = Area(
        "Malformed responses",
        [
            FaultRow(
                "R01", "fewer bytes arrive than `Content-Length` says",
                "no response; the error has the expected and the received number of bytes"),
            FaultRow("R02", "the chunks end without the last one", "no response, however much has arrived"),
            FaultRow("R03", "a chunk size is not a number", "no response, and the connection is not reused"),
            FaultRow("R04", "a chunk size exceeds every integer", "no response, and the connection is not reused"),
            FaultRow("R06", "two different lengths", "neither is used, and the connection is not reused"),
            FaultRow("R08", "a length that is not a number", "no response; the length is not guessed"),
            FaultRow(
                "R09", "a length together with chunks, or a transfer coding that was not requested",
                "no response"),
            FaultRow(
                "R11", "a header field without a colon, with a NUL, folded, or ended by a bare line feed",
                "no response; empty values and values beyond ASCII are accepted"),
            FaultRow(
                "R13", "a body where none is allowed: after 204, 304, or the response to HEAD",
                "the body is empty, and its bytes are part of no response"),
            FaultRow("R14", "the first line is not a status line, or selects another protocol", "no response"),
            FaultRow(
                "R16", "the connection closes before a head, within it, or after `100 Continue`",
                "no response; the error says that the request may have been processed"),
            FaultRow(
                "R17", "the body has no length and ends with its connection",
                "a response that says how its end was determined; it is not cached"),
            FaultRow("R18", "a reset instead of the end", "no response"),
            FaultRow(
                "R20", "extra bytes after a complete response",
                "the response is exact, and the extra bytes are part of no response"),
            FaultRow(
                "R21", "unsolicited bytes on an idle connection",
                "they are never the response to the next request, which uses a new connection"),
        ])

    static let bombs = Area(
        "Oversized or damaged responses",
        [
            FaultRow(
                "R23", "one header field of many kilobytes, or a line without an end",
                "no response, and bounded memory"),
            FaultRow(
                "R24", "thousands of header fields or trailers",
                "no response, and bounded memory; the limits are ``Limits/headerBytes``, 1,000 fields of the head and "
                    + "1,000 of the trailer"),
            FaultRow("R26", "endless `100 Continue` or `103 Early Hints`", "no response; a few are skipped"),
            FaultRow(
                "R27", "200 KB that decompress to 200 MB",
                "stopped at the limit, which is exact to the byte and applies to the delivered bytes"),
            FaultRow("R28", "an endless body, or chunks beyond the limit", "stopped at the limit"),
            FaultRow("R30", "a truncated compressed body with a matching length", "no response"),
            FaultRow("R31", "a damaged compressed body, or bytes after its end", "no response"),
        ])

    static let redirects = Area(
        "Redirects",
        [
            FaultRow(
                "R33", "a redirect to itself",
                "followed as often as the policy allows; the error lists the redirects"),
            FaultRow(
                "R34", "a redirect to a file, to another scheme, or to no valid URL",
                "not followed, and nothing is opened"),
            FaultRow(
                "R36", "a redirect from https to http",
                "not followed unless the policy allows it, and then without the secrets"),
            FaultRow(
                "R37", "a redirect to another origin, of a request with secrets in its header",
                "no secret is sent there, nor after a redirect back; within the same origin they are kept"),
            FaultRow(
                "R39", "a redirect of a request with a body",
                "301, 302 and 303 become GET without it; 307 and 308 send it again, unless it can be read only once"),
        ])
}
