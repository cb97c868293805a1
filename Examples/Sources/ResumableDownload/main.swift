// Downloads a large file, with progress. Kill the program and start it again: it resumes the download, and checks the
// SHA-256. The rate is limited to 100 MB per second, so that there is time to do so.
//
//     swift run ResumableDownload http://127.0.0.1:8080/bytes/1000000000 disk.img [SHA-256]

import Ferry

struct DiskImage: Request {
    let path: String  // an absolute URL needs no base
}

let arguments = CommandLine.arguments.dropFirst()
guard let url = arguments.first, let target = arguments.dropFirst().first else {
    fatalError("which URL, and to which file?")
}
let options = DownloadOptions(sha256: arguments.dropFirst(2).first, bytesPerSecond: 100_000_000)

do {
    try await withNetworkAgent { agent throws(RequestError) in
        let file = try await agent.download(DiskImage(path: url), to: .file(target), options: options) { progress in
            let percent = Int((progress.fraction ?? 0) * 100)
            print("\(percent) %, \(Int(progress.rate / 1_000_000)) MB/s, \(progress.remaining ?? .zero) left")
        }
        print("\(file.path): \(file.length) bytes, \(file.resumedFrom) of them from an earlier run")
    }
} catch {
    if error.is(.contentMismatch(.sha256)) { print("the checksum is wrong") } else { print(error) }
}
