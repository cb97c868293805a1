// The context crosses the border of C as a raw pointer. It is retained when the loop is started, borrowed in every
// callback, and released once: by `on_stopped`, which comes last of all, or when the loop could not be started.

extension LoopContext {
    func retained() -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(self).toOpaque()
    }

    func released() {
        Unmanaged.passUnretained(self).release()
    }

    static func of(_ pointer: UnsafeMutableRawPointer?) -> LoopContext? {
        pointer.map { Unmanaged<LoopContext>.fromOpaque($0).takeUnretainedValue() }
    }
}
