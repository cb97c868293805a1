internal import Czstd

/// What stands in Redis for an entry: its record as it is, or compressed with zstd behind a mark and its length.
///
/// The record's digest is checked after this, so a value that is another one is found out there. Here a value costs no
/// more memory than an entry may.
enum RedisValue {
    /// No record begins so: it begins with a digest.
    static let mark = Array("ferry zstd value".utf8)
    private static let frameStart = mark.count + 8
    /// The fastest of zstd's usual levels.
    private static let level: Int32 = 1
    /// Of a large record so much is tried first: what is compressed already, like images, is found out by that.
    private static let sample = 16 << 10

    /// A record as it is stored: compressed where it has at least so many bytes and an eighth of them is saved.
    static func of(_ record: [UInt8], from least: Int?) -> [UInt8] {
        guard let least, record.count >= max(least, 256) else { return record }
        return record.withUnsafeBytes { bytes in
            if bytes.count >= 4 * sample {
                // From the middle, where the body is.
                let part = UnsafeRawBufferPointer(rebasing: bytes[(bytes.count / 2)...].prefix(sample))
                guard let tried = compressed(part), pays(tried.count, of: part.count) else { return record }
            }
            guard let made = compressed(bytes), pays(made.count, of: record.count) else { return record }
            return made
        }
    }

    private static func pays(_ count: Int, of whole: Int) -> Bool { count <= whole - whole / 8 }

    private static func compressed(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        let bound = ZSTD_compressBound(bytes.count)
        var isMade = false
        let value = [UInt8](unsafeUninitializedCapacity: frameStart + bound) { buffer, used in
            let buffer = UnsafeMutableRawBufferPointer(buffer)
            buffer.copyBytes(from: mark)
            buffer.storeBytes(of: UInt64(bytes.count).littleEndian, toByteOffset: mark.count, as: UInt64.self)
            let frame = UnsafeMutableRawBufferPointer(rebasing: buffer[frameStart...])
            let count = ZSTD_compress(frame.baseAddress, frame.count, bytes.baseAddress, bytes.count, level)
            isMade = ZSTD_isError(count) == 0
            used = isMade ? frameStart + count : 0
        }
        return isMade ? value : nil
    }

    /// The record that a value stands for; `nil` where it is damaged, cut, followed by something, or larger than `most`
    /// bytes, whatever it says of its length.
    static func record(_ value: [UInt8], most: Int) -> [UInt8]? {
        guard value.starts(with: mark) else { return value.count <= most ? value : nil }
        guard value.count > frameStart else { return nil }
        return value.withUnsafeBytes { bytes in
            let said = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: mark.count, as: UInt64.self))
            let frame = UnsafeRawBufferPointer(rebasing: bytes[frameStart...])
            guard let count = Int(exactly: said), count > 0, count <= most,
                ZSTD_getFrameContentSize(frame.baseAddress, frame.count) == said,
                ZSTD_findFrameCompressedSize(frame.baseAddress, frame.count) == frame.count
            else { return nil }
            var isWhole = false
            let record = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
                let made = ZSTD_decompress(buffer.baseAddress, count, frame.baseAddress, frame.count)
                isWhole = ZSTD_isError(made) == 0 && made == count
                used = isWhole ? count : 0
            }
            return isWhole ? record : nil
        }
    }
}
