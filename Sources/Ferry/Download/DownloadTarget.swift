/// Where a download goes.
public enum DownloadTarget: Sendable, Hashable {
    /// To this file. What is there already stays until the new one is complete, and is replaced by it in one step; a
    /// symbolic link is replaced itself, not the file that it points to.
    case file(String)

    /// Into this directory, by the name in the answer's `Content-Disposition` (RFC 6266), or else by the last component
    /// of the URL. Of either one name is made that is safe: no path, no hidden file, no character that cannot be seen,
    /// and no more than 255 bytes. Nothing is replaced: where something has the name already, the file is called
    /// `name-1.txt`, and so on; ``DownloadedFile/path`` says how.
    case directory(String)
}
