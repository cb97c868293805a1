internal import Csqlite3

/// A prepared statement (sqlite3_prepare_v3(3)). It keeps its connection from being closed, not from being let go.
struct SQLiteStatement: ~Copyable {
    private let raw: OpaquePointer

    init(_ raw: OpaquePointer) { self.raw = raw }

    deinit { sqlite3_finalize(raw) }

    func bind(_ number: Int64, at index: Int32) throws(CacheFault) {
        try check(sqlite3_bind_int64(raw, index, number))
    }

    /// The bytes must live until the statement is reset.
    func bind(_ bytes: UnsafeRawBufferPointer, at index: Int32) throws(CacheFault) {
        try check(sqlite3_bind_blob64(raw, index, bytes.baseAddress, UInt64(bytes.count), nil))
    }

    /// As the eight bytes that it is in memory, which SQLite copies.
    func bind(bytesOf number: Int64, at index: Int32) throws(CacheFault) {
        let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        let code = withUnsafeBytes(of: number) {
            sqlite3_bind_blob64(raw, index, $0.baseAddress, UInt64($0.count), copies)
        }
        try check(code)
    }

    /// Whether there is a row.
    func step() throws(CacheFault) -> Bool {
        let code = sqlite3_step(raw)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw fault(code)
        }
    }

    /// Runs it to its end, ready for the next time.
    func run() throws(CacheFault) {
        defer { reset() }
        while try step() {}
    }

    /// Ready for the next time. What it says of faults was said by the step.
    func reset() { sqlite3_reset(raw) }

    func number(_ column: Int32) -> Int64 { sqlite3_column_int64(raw, column) }

    func text(_ column: Int32) -> String? { sqlite3_column_text(raw, column).map { String(cString: $0) } }

    /// The bytes of a column, until the next step or reset; none where a column holds none.
    func withBytes<R>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        let start = sqlite3_column_blob(raw, column)
        let count = Int(sqlite3_column_bytes(raw, column))
        return body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }

    private func fault(_ code: Int32) -> CacheFault {
        CacheFault(sqlite: code, errno: sqlite3_system_errno(sqlite3_db_handle(raw)))
    }

    private func check(_ code: Int32) throws(CacheFault) {
        if code != SQLITE_OK { throw fault(code) }
    }
}
