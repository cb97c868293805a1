/// Asks for the routes once, on the caller's thread.
enum RouteQuery {
    static func run(_ source: RouteSource) -> Reachability.Status {
        let unknown = Reachability.Status.online([])
        guard let socket = RouteSocket(source, listens: false) else { return unknown }
        // The kernel answers at once; a sandbox that plays the kernel may not.
        socket.setReceiveTimeout(seconds: 1)
        return withUnsafeTemporaryAllocation(byteCount: RouteSocket.bufferSize, alignment: 16) { buffer in
            var table = RouteTable()
            while table.status == nil {
                if let sequence = table.nextDump(), !socket.requestDump(sequence) { return unknown }
                if table.isGivenUp { return unknown }
                switch socket.receive(into: buffer, waits: true) {
                case .datagram(let count): table.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                case .lost: table.lostMessages()
                case .nothing, .end: return unknown
                }
            }
            return table.status ?? unknown
        }
    }
}
