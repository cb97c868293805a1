// Prints how long each phase of a request took, and the reason if the certificate could not be verified.
//
//     swift run WhereTimeGoes https://example.com
//     swift run WhereTimeGoes https://127.0.0.1:8443 authority.pem     # trusts this authority, not the system's

import Ferry

struct Timings: RequestObserver {
    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        let phases = [
            ("queue", metrics.queue), ("name", metrics.nameLookup), ("connect", metrics.connect), ("TLS", metrics.tls),
            ("first byte", metrics.firstByte), ("total", metrics.total),
        ]
        for case (let phase, let time?) in phases { print("\(phase): \(time)") }
    }
}

struct Page: Request {
    let path: String
    var observers: [any RequestObserver] { [Timings()] }
}

let arguments = CommandLine.arguments.dropFirst()
let url = arguments.first ?? "https://example.com"
var configuration = NetworkConfiguration()
configuration.tls.authorityFile = arguments.dropFirst().first

do {
    try await withNetworkAgent(configuration: configuration) { agent throws(RequestError) in
        let response = try await agent.send(Page(path: url)).response
        print("\(response.status) over \(response.httpVersion), \(response.peer?.address ?? "no address")")
    }
} catch {
    switch error.code {
    case .tls(.expired): print("the certificate has expired or is not yet valid")
    case .tls(.hostname): print("the certificate is for another host")
    case .tls(.untrusted): print("the certificate is not from a trusted authority")
    default: print(error)  // one line: what, where, and what libcurl and the system said
    }
}
