import Glibc

@testable import Ferry
@testable import FerryTestSupport

/// `CLONE_NEWNET`, which like `unshare(2)` and `setns(2)` is missing in Swift's Glibc module.
private let newNetwork: Int32 = 0x4000_0000

private func unshare(_ what: Int32) -> Int32 {
    guard let found = dlsym(nil, "unshare") else { return -1 }
    return unsafeBitCast(found, to: (@convention(c) (Int32) -> Int32).self)(what)
}

private func enter(_ namespace: Int32, _ what: Int32) -> Int32 {
    guard let found = dlsym(nil, "setns") else { return -1 }
    return unsafeBitCast(found, to: (@convention(c) (Int32, Int32) -> Int32).self)(namespace, what)
}

/// A separate network, with only a loopback link that is down. It is removed with the last descriptor for it.
final class NetworkNamespace: Sendable {
    private let descriptor: Int32

    /// `nil` if this process may not create one.
    init?() {
        let opened = onThread { () -> Int32 in
            // For this thread only, which ends here.
            if unshare(newNetwork) != 0 { return -1 }
            return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
        }
        if opened < 0 { return nil }
        descriptor = opened
    }

    deinit { close(descriptor) }

    /// Whether this process may create one; determined once.
    static let isPermitted = NetworkNamespace() != nil

    /// Sockets into it.
    var source: RouteSource {
        RouteSource { listens in
            onThread { enter(self.descriptor, newNetwork) == 0 ? RouteSource.system.open(listens) : -1 }
        }
    }

    /// Sends one message and waits for the kernel's reply, which is 0 or a negated error number.
    func change(_ type: UInt16, flags: UInt16 = Netlink.requestAcknowledge, _ payload: [UInt8]) -> Int32 {
        guard let socket = RouteSocket(source, listens: false) else { return -1 }
        let message = Netlink.message(type, flags: flags, sequence: 1, payload)
        if send(socket.descriptor, message, message.count, 0) != message.count { return -1 }
        var buffer = [UInt8](repeating: 0, count: 8192)
        let count = recv(socket.descriptor, &buffer, buffer.count, 0)
        return count < 20 ? -1 : buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: Int32.self) }
    }
}

/// Runs `body` on a new thread, and waits for it.
private func onThread(_ body: @escaping @Sendable () -> Int32) -> Int32 {
    final class Job {
        let body: @Sendable () -> Int32
        var result: Int32 = -1
        init(_ body: @escaping @Sendable () -> Int32) { self.body = body }
    }
    let job = Job(body)
    var thread = pthread_t()
    let context = Unmanaged.passUnretained(job).toOpaque()
    let code = pthread_create(
        &thread, nil,
        { context in
            guard let context else { return nil }
            let job = Unmanaged<Job>.fromOpaque(context).takeUnretainedValue()
            job.result = job.body()
            return nil
        }, context)
    if code != 0 { return -1 }
    return withExtendedLifetime(job) {
        pthread_join(thread, nil)
        return job.result
    }
}
