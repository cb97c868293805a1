internal import Czstd

/// The form of an entry in Redis: its record unchanged, or a mark and the record's length, followed by the record
/// compressed with zstd.
///
/// Decoding uses no more memory than an entry may have. The digest of the record is checked later, so a value that was
/// swapped for another one is detected then.
enum RedisValue {
    /// The beginning of compressed values. No record begins like this, because a record begins with a digest.
    static let mark = Array("ferry zstd value".utf8)
    private static let frameStart = mark.count + 8
    /// The fastest of zstd's regular levels.
    private static let level: Int32 = 1
    /// The size of the sample that is compressed first. It shows whether a large record can be compressed at all, which
    /// images cannot.
    private static let sample = 16 << 10

    /// The value to store for a record. It is compressed if the record has at least `least` bytes and compression saves
    /// at least an eighth of them.
    static func of(_ record: [UInt8], from least: Int?) -> [UInt8] {
        guard let least, record.count >= max(least, 256) else { return record }
        return record.withUnsafeBytes { bytes in
            if bytes.count >= 4 * sample {
                // The middle of a record is part of the body.
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

    /// The record of a value. `nil` if the value is damaged, truncated or followed by other bytes, or if the record has
    /// more than `most` bytes, whatever length the value declares.
    static func record(_ value: [UInt8], most: Int) -> [UInt8]? {
        guard value.starts(with: mark) else { return value.count <= most ? value : nil }
        guard let count = declaredCount(value), count <= most else { return nil }
        return value.withUnsafeBytes { bytes in
            let frame = UnsafeRawBufferPointer(rebasing: bytes[frameStart...])
            var isWhole = false
            let record = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
                let made = ZSTD_decompress(buffer.baseAddress, count, frame.baseAddress, frame.count)
                isWhole = ZSTD_isError(made) == 0 && made == count
                used = isWhole ? count : 0
            }
            return isWhole ? record : nil
        }
    }

    /// Whether a value, or its beginning, seems to be undamaged and has more than `most` bytes, compressed or not.
    static func isTooLarge(_ value: [UInt8], most: Int) -> Bool {
        if value.count > most { return true }
        guard value.starts(with: mark), let count = declaredCount(value) else { return false }
        return count > most
    }

    /// The size of the record that a compressed value declares; `nil` if the frame does not agree, or is truncated or
    /// followed by other bytes.
    private static func declaredCount(_ value: [UInt8]) -> Int? {
        guard value.count > frameStart else { return nil }
        return value.withUnsafeBytes { bytes -> Int? in
            let said = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: mark.count, as: UInt64.self))
            let frame = UnsafeRawBufferPointer(rebasing: bytes[frameStart...])
            guard let count = Int(exactly: said), count > 0,
                ZSTD_getFrameContentSize(frame.baseAddress, frame.count) == said,
                ZSTD_findFrameCompressedSize(frame.baseAddress, frame.count) == frame.count
            else { return nil }
            return count
        }
    }
}
