/// Whether the task at hand refreshes a token: what it sends must not wait for that refresh.
enum RefreshScope {
    /// The agent whose token is refreshed.
    @TaskLocal static var core: ObjectIdentifier?
}
