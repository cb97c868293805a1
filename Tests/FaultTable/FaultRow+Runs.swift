extension FaultRow {
    static let ends = Area(
        "Cancelling and shutting down",
        [
            FaultRow(
                "R71",
                "cancelled in any phase: queued, looking a name up, connecting, in the handshake, sending, waiting, "
                    + "reading, paused, before a retry, while the answer is kept",
                "one result at once, the connection is closed, and the place is free"),
            FaultRow(
                "R73", "a shutdown with runs at work, a second one, and a request after it",
                "what ends within the grace is answered, the rest is told once"),
            FaultRow(
                "R115", "a shutdown while a run is redirected, retried or challenged",
                "within the grace it goes on, and ends by its own result"),
            FaultRow(
                "R117", "code of the application's blocks the processing queue, or a report of the progress",
                "other runs that are awaited end by their deadlines and cancels in time"),
            FaultRow(
                "R74", "a reader who leaves, an answer that nobody reads",
                "a short rest is read, a long one closed, and the next request served"),
            FaultRow(
                "R119", "a write to the disk or to standard output that does not return",
                "cancel, deadline and shutdown come in time, and the process can end"),
            FaultRow(
                "R120", "a job that holds the loop longer than the limits of the runs behind it",
                "no limit passes that the server or the network did not cause"),
            FaultRow(
                "R121", "a thousand runs that hang in a name or a connection",
                "those behind them start at once"),
        ])

    static let reuse = Area(
        "Kept connections and retries",
        [
            FaultRow(
                "R76", "a kept connection is closed by the server before or while it is used",
                "what may be sent twice goes out once more on a new one"),
            FaultRow(
                "R77", "the same, of a request that must not be sent twice",
                "it is not, unless the request says it may be"),
            FaultRow(
                "R116", "an `Idempotency-Key` that the request computes, and a retry, a 307, a token or a challenge",
                "the same key in every attempt, and so all else that the request says"),
            FaultRow(
                "R78", "503 with `Retry-After` in seconds, as a date, or as nonsense; and 401",
                "waited for up to the policy's cap; nonsense is ignored; 401 is not tried again"),
            FaultRow(
                "R80", "an answer while the upload is under way, and then a reset",
                "the answer is delivered, and not the reset"),
        ])

    static let engines = Area(
        "Both engines",
        [
            FaultRow(
                "R125",
                "a response split at every byte; two responses in one packet; bytes behind its end, or before the "
                    + "request",
                "the same result in every split; in the other cases the connection is closed"),
            FaultRow(
                "R126",
                "broken framing, chunks, trailers, informational responses, long heads, folded and bare lines",
                "both engines tell the same code and phase"),
            FaultRow(
                "R127", "a thousand connections at work, a tenth reset and a tenth cancelled",
                "one result each, and no descriptor is left"),
        ])

    static let http2 = Area(
        "HTTP/2", needsServers: true,
        [
            FaultRow("R82", "a stream is reset before or inside its body", "an error; the other streams finish"),
            FaultRow("R83", "streams are refused again and again", "tried a few times, then an error"),
            FaultRow(
                "R84", "a GOAWAY that says the request was not processed",
                "sent once more whatever its method, and not for ever"),
            FaultRow("R86", "a body of another length than announced, a line break in a field", "no answer"),
        ])

    static let downloads = Area(
        "Downloads that go on from a part",
        [
            FaultRow(
                "R88", "another range than the one asked for",
                "not appended: begun anew, or an error that keeps the part"),
            FaultRow("R89", "more or fewer bytes than the range has", "an error, and no file"),
            FaultRow(
                "R90", "the file has changed meanwhile, or has only a weak validator",
                "begun anew; a weak validator is never used"),
            FaultRow("R91", "the whole file instead of the rest", "taken as the whole"),
            FaultRow("R92", "416, as nothing is missing, or as the file is another", "done, or begun anew"),
            FaultRow(
                "R123", "a status that comes with no file, like 202, 204 or 205",
                "an error, and the old file stays; unless the request names that status"),
            FaultRow("R94", "the disk is full", "an error with the system's number; no file, and the agent goes on"),
            FaultRow("R95", "the process is killed again and again", "gone on with, and whole in the end"),
            FaultRow(
                "R96", "names that lead out of the directory, hidden and endless ones, links in the way",
                "a safe name in the directory; links are not followed"),
        ])

    static let cache = Area(
        "The cache",
        [
            FaultRow("R98", "a body that is cut short", "nothing is kept of it"),
            FaultRow(
                "R99", "bytes flipped, files cut, entries swapped",
                "a miss at worst: never wrong bytes, and never an error"),
            FaultRow("R100", "the process is killed while it writes", "every entry is whole or missing"),
            FaultRow("R101", "two processes share a directory", "every read is whole"),
            FaultRow(
                "R102", "the disk is full, fails, or may not be written to",
                "the answer is delivered, the fault counted, and the cache left alone for a while"),
            FaultRow("R104", "answers for one user, and what must not be stored", "no other user sees them"),
            FaultRow(
                "R112",
                "credentials that the request does not show (a provider's, a proxy's, a token, a cookie), and then a "
                    + "redirect that drops them",
                "the response is not stored: it is never a hit for anybody else"),
        ])

    static let tokens = Area(
        "Tokens",
        [
            FaultRow(
                "R113", "the token of a download, in segments too, expires again and again, also in a pause",
                "the file is whole, and there is one refresh for each token that has expired"),
            FaultRow(
                "R114", "a resource that refuses every token, again and again, in turn or at once",
                "three refreshes in a minute at most; runs of other resources are served"),
        ])

    static let secretsAndGroups = Area(
        "Secrets, batches and chains",
        [
            FaultRow(
                "R107", "secrets in header fields, URLs, cookies and bodies, in every case above",
                "none in any log, error, metric, command or file of the cache"),
            FaultRow(
                "R108", "one of a batch fails",
                "the rest is cancelled and what had finished is there, or all are collected in order"),
            FaultRow(
                "R109", "one step of a chain fails or is cancelled",
                "later ones are never sent, and there is one result"),
        ])
}
