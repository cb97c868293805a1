extension FaultRow {
    static let ends = Area(
        "Cancel and shutdown",
        [
            FaultRow(
                "R71",
                "cancelled in any phase: in the queue, name lookup, connect, TLS handshake, sending, waiting, "
                    + "reading, paused, before a retry, while the response is stored",
                "one result at once, the connection is closed, and its slot is free"),
            FaultRow(
                "R73", "a shutdown with active runs, a second shutdown, and a request after it",
                "runs that end within the grace period have their result, the others end with `shutdown`"),
            FaultRow(
                "R115", "a shutdown while a run is redirected, retried or challenged",
                "within the grace period the run continues and ends with its own result"),
            FaultRow(
                "R117", "application code blocks the processing queue or a progress report",
                "other awaited runs meet their deadlines and are cancelled in time"),
            FaultRow(
                "R74", "a reader that stops early, a response that nobody reads",
                "a short rest is read, a long one is closed, and the next request succeeds"),
            FaultRow(
                "R119", "a call of the disk, or a write to standard output, that does not return",
                "cancel, deadline and shutdown take effect in time, and the process can end"),
            FaultRow(
                "R120", "a job that blocks the event loop for longer than the limits of the runs behind it",
                "no limit passes unless the server or the network causes it"),
            FaultRow(
                "R121", "a thousand runs that hang in a name lookup or a connect",
                "the runs behind them start at once"),
        ])

    static let reuse = Area(
        "Reused connections and retries",
        [
            FaultRow(
                "R76", "a reused connection that the server closes before or during its use",
                "what may be sent twice is sent again on a new connection"),
            FaultRow(
                "R77", "the same, of a request that must not be sent twice",
                "it is not sent again, unless the request allows it"),
            FaultRow(
                "R116", "an `Idempotency-Key` that the request computes, and a retry, a 307, a token or a challenge",
                "the same key in every attempt, as with everything else in the request"),
            FaultRow(
                "R78", "503 with `Retry-After` in seconds, as a date, or as nonsense; and 401",
                "waits up to the policy's maximum; nonsense is ignored; 401 is not retried"),
            FaultRow(
                "R80", "a response during the upload, and then a reset",
                "the response is delivered, not the reset"),
        ])

    static let engines = Area(
        "Both engines",
        [
            FaultRow(
                "R125",
                "a response split at every byte; two responses in one packet; bytes after its end, or before "
                    + "the request",
                "the same result in every split; in the other cases the connection is closed"),
            FaultRow(
                "R126",
                "broken framing, chunks, trailers, informational responses, long heads, folded lines and bare "
                    + "line feeds",
                "both engines report the same code and phase"),
            FaultRow(
                "R127", "a thousand active connections, of which a tenth is reset and a tenth cancelled",
                "one result each, and no file descriptor is left"),
        ])

    static let http2 = Area(
        "HTTP/2", needsServers: true,
        [
            FaultRow("R82", "a stream is reset before or within its body", "an error; the other streams finish"),
            FaultRow("R83", "streams are refused again and again", "retried a few times, then an error"),
            FaultRow(
                "R84", "a GOAWAY that says that the request was not processed",
                "sent again whatever its method, a limited number of times"),
            FaultRow("R86", "a body with a different length than announced, a line break in a field", "no response"),
        ])

    static let downloads = Area(
        "Resumed downloads",
        [
            FaultRow(
                "R88", "a different range than requested",
                "not appended: restarted, or an error that keeps the partial file"),
            FaultRow("R89", "more or fewer bytes than the range has", "an error, and no file"),
            FaultRow(
                "R90", "the file has changed in the meantime, or has only a weak validator",
                "restarted; a weak validator is never used"),
            FaultRow("R91", "the whole file instead of the rest", "used as the whole file"),
            FaultRow(
                "R92", "416, because nothing is missing, or because the file is a different one",
                "complete, or restarted"),
            FaultRow(
                "R123", "a status without a file, like 202, 204 or 205",
                "an error, and the old file stays, unless the request accepts that status"),
            FaultRow("R94", "the disk is full", "an error with the system's errno; no file, and the agent continues"),
            FaultRow("R95", "the process is killed again and again", "resumed each time, and complete in the end"),
            FaultRow(
                "R96", "names that lead out of the directory, hidden and very long names, symbolic links",
                "a safe name in the directory; links are not followed"),
        ])

    static let cache = Area(
        "The cache",
        [
            FaultRow("R98", "a truncated body", "none of it is stored"),
            FaultRow(
                "R99", "flipped bytes, truncated files, swapped entries",
                "a miss at worst: never wrong bytes, and never an error"),
            FaultRow("R100", "the process is killed while it writes", "every entry is complete or missing"),
            FaultRow("R101", "two processes share a directory", "every read is complete"),
            FaultRow(
                "R102", "the disk is full, fails, or is read-only",
                "the response is delivered, the fault is counted, and the store is not used for a while"),
            FaultRow(
                "R104", "responses for one user, and responses that must not be stored",
                "no other user gets them"),
            FaultRow(
                "R112",
                "credentials that the request does not show (of a provider, a proxy, a token, a cookie), and "
                    + "then a redirect that drops them",
                "the response is not stored, and is never a hit for anybody else"),
        ])

    static let tokens = Area(
        "Tokens",
        [
            FaultRow(
                "R113",
                "the token of a download, also of a segmented one, expires again and again, also during a pause",
                "the file is complete, with one refresh for each expired token"),
            FaultRow(
                "R114", "a resource that rejects every token, again and again, in sequence or at once",
                "at most three refreshes per minute; runs for other resources succeed"),
        ])

    static let secretsAndGroups = Area(
        "Secrets, batches and chains",
        [
            FaultRow(
                "R107", "secrets in header fields, URLs, cookies and bodies, in every case above",
                "none in any log, error, metric, command or cache file"),
            FaultRow(
                "R108", "one request of a batch fails",
                "the rest is cancelled and earlier results are available, or all results are collected in order"),
            FaultRow(
                "R109", "one step of a chain fails or is cancelled",
                "later steps are never sent, and there is one result"),
        ])
}
