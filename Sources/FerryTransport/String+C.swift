extension String? {
    /// The C string, `nil` for `nil`, as long as `body` runs.
    func withOptionalCString<R>(_ body: (UnsafePointer<CChar>?) -> R) -> R {
        guard let self else { return body(nil) }
        return self.withCString(body)
    }
}
