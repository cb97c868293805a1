internal import Ferry

/// What a file is called on the board.
enum FileName {
    /// The target's name, or the end of the URL's path.
    static func of(_ url: String, _ target: DownloadTarget) -> String {
        let path =
            switch target {
            case .file(let path): path
            case .directory: String(url.prefix { $0 != "?" && $0 != "#" })
            }
        return path.split(separator: "/").last.map(String.init) ?? path
    }
}
