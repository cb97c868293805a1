extension RequestError.Code {
    /// What happened, for the faults that the core finds without libcurl's having words for them.
    var sentence: String {
        switch name {
        case "invalidURL": "this is not a URL"
        case "unsupportedScheme": "only http and https are carried"
        case "invalidRequest": "the request cannot be sent as it is"
        case "addressForbidden": "the address policy forbids the address"
        case "dns": "the name was not found"
        case "connect": "there is no connection"
        case "proxy": "the proxy refused"
        case "tls": "there is no trust"
        case "timeout": timeoutSentence
        case "connectionReset": "the peer broke the connection"
        case "connectionClosed": "the peer closed the connection before a whole head came"
        case "incompleteBody": "the body ended early"
        case "malformedResponse": "the answer breaks the rules of HTTP"
        case "headersTooLarge": "the head is larger than allowed"
        case "responseTooLarge": "the body is larger than allowed"
        case "contentDecoding": "the compressed body is damaged"
        case "fileIO": "a file could not be written or read"
        case "uploadSource": "the source of the body failed"
        case "bodyNotReplayable": "the body cannot be sent a second time"
        case "http2Stream": "the stream of HTTP/2 was ended"
        case "cancelled": "the run was cancelled"
        case "shutdown": "the agent has been shut down"
        case "internalError": "out of memory, or the system refused"
        default: ""
        }
    }

    private var timeoutSentence: String {
        switch detail {
        case "queue": "it waited too long for its turn"
        case "dns": "looking up the name took too long"
        case "connect": "connecting took too long"
        case "tls": "the TLS handshake took too long"
        case "write": "the peer has stopped reading"
        case "responseHead": "no answer came in time"
        case "read": "the body has stopped coming"
        case "lowSpeed": "the rate was too low for too long"
        case "deadline": "the deadline has passed"
        default: "it took too long"
        }
    }
}
