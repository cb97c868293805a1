import FerryTransport
import FoundationEssentials

extension Data {
    /// Bytes of a result, without a copy.
    ///
    /// The result is retained here and released by the deallocator, once, when the last `Data` of this storage goes.
    /// Nobody writes to the bytes: `Data` copies before it changes memory that it did not allocate.
    init(sharing result: TransferResult, start: UnsafeRawPointer, count: Int) {
        let owner = Unmanaged.passRetained(result)
        self.init(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: count,
            deallocator: .custom { _, _ in owner.release() })
    }
}
