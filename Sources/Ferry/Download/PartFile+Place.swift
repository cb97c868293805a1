import Glibc

extension PartFile {
    /// The part is the file from here on: its bytes on the disk, under its name, which is on the disk when the
    /// directory is. What has the name gives way if it `replaces`; else the file gets the first that is free of
    /// `x.txt`, `x-1.txt` and so on. Returns the name.
    func place(as name: String, replaces: Bool, hasMetadata: Bool) throws(FileFault) -> String {
        if fsync(descriptor) != 0 { throw FileFault(partPath) }
        var taken = name
        if replaces {
            try Self.check(name, in: directory.descriptor, path: directory.path)
            if renameat(directory.descriptor, part, directory.descriptor, name) != 0 {
                throw FileFault(directory.path + "/" + name)
            }
        } else {
            var number = 0
            while try !take(taken) {
                number += 1
                if number > Self.mostOfAName { throw FileFault(directory.path + "/" + name, errno: EEXIST) }
                taken = SafeFileName.numbered(name, number)
            }
        }
        // What is left of the metadata after a crash here says nothing without a part.
        if hasMetadata { unlinkat(directory.descriptor, metadata, 0) }
        unlock()
        return taken
    }

    /// Gives the part a name, unless something has it: looked at and done in one step, whoever else is about it.
    private func take(_ name: String) throws(FileFault) -> Bool {
        let directory = directory.descriptor
        if linkat(directory, part, directory, name, 0) == 0 {
            // A part that is left after a crash here is known by its second name, and put away.
            unlinkat(directory, part, 0)
            return true
        }
        switch errno {
        case EEXIST: return false
        case EPERM, EOPNOTSUPP, EMLINK, ENOSYS: break
        default: throw FileFault(self.directory.path + "/" + name)
        }
        // Where a file has one name only, an empty one keeps the place.
        let empty = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        if empty < 0 && errno == EEXIST { return false }
        if empty >= 0 { close(empty) }
        if empty >= 0 && renameat(directory, part, directory, name) == 0 { return true }
        let fault = FileFault(self.directory.path + "/" + name)
        if empty >= 0 { unlinkat(directory, name, 0) }
        throw fault
    }

    /// So many files of one name are enough.
    private static let mostOfAName = 9_999
}
