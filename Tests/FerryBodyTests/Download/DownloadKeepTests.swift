import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A run that fails keeps parts that it has not written to.
@Suite(.timeLimit(.minutes(1))) struct DownloadKeepTests {
    private let five = Array("01234".utf8)

    private func expectKept(_ folder: borrowing Folder, _ sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(folder.part("f") == five && folder.hasMetadata("f"), sourceLocation: sourceLocation)
    }

    @Test func aRunThatFailsBeforeAnAnswerLeavesAPartThatIsNotItsOwn() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let target = DownloadTarget.file(folder.file("f"))
            try folder.leavePart(five, "f", of: server.baseURL + "/f")
            server.script(path: "/f", uses: 3, [.reset])
            // It has to start again, and does not get that far.
            for options in [DownloadOptions(resumes: false), DownloadOptions(segments: 3)] {
                _ = await fault { () throws(RequestError) in
                    try await agent.download(Get("/f"), to: target, options: options)
                }
                expectKept(folder)
            }
            // Another file, which does not exist.
            let other = await fault { () throws(RequestError) in
                try await agent.download(Get("/status/404"), to: target)
            }
            #expect(other?.code == .invalidStatusCode(404))
            expectKept(folder)
            _ = await fault { () throws(RequestError) in
                try await agent.download(HTTPRequest(.post, "/f"), to: target)
            }
            expectKept(folder)
            server.answer("/f", "200 OK", "Content-Length: 3", body: "new")
            _ = try await agent.download(Get("/f"), to: target, options: DownloadOptions(resumes: false))
            #expect(folder.bytes("f") == Array("new".utf8) && folder.names == ["f"])
        }
    }

    @Test func whatCannotBeReadIsAnErrorAndNotNothing() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            try folder.leavePart(five, "f", of: server.baseURL + "/f")
            try FileManager.default.moveItem(atPath: folder.file("f.ferry-meta"), toPath: folder.file("away"))
            // A directory is opened, and cannot be read.
            try FileManager.default.createDirectory(
                atPath: folder.file("f.ferry-meta"), withIntermediateDirectories: true)
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/f"), to: .file(folder.file("f")))
            }
            #expect(error?.code == .fileIO && error?.errno == Int(EISDIR) && error?.phase == .preparing)
            #expect(server.requestCount == 0 && folder.part("f") == five)
        }
    }

    @Test func whatNobodyKnowsAnythingOfIsThrownAway() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            try folder.write(five, "f.ferry-part")
            _ = await fault { () throws(RequestError) in
                try await agent.download(Get("/status/404"), to: .file(folder.file("f")))
            }
            #expect(folder.names == [])
        }
    }
}
