internal import FerryMeasurement
internal import Foundation
internal import Glibc

@main
struct Main {
    static func main() async {
        raiseDescriptorLimit()
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments.contains("--help") || arguments.contains("-h") {
                print(Options.help, terminator: "")
            } else if arguments.first == "worker" {
                try await Worker.run(Array(arguments.dropFirst()))
            } else if arguments.first == "soak" {
                try SoakCommand(Array(arguments.dropFirst())).run()
            } else if arguments.first == "curves" {
                try CurvesCommand(Array(arguments.dropFirst())).run()
            } else if arguments.first == "json" {
                try measureJSON(Array(arguments.dropFirst()))
            } else {
                try measure(Options(arguments))
            }
        } catch {
            FileHandle.standardError.write(Data("FerryBenchmarks: \(error)\n".utf8))
            exit(1)
        }
    }

    /// `json [ROUNDS [SAMPLE [WAY]]]`: JSON alone, for work on it.
    private static func measureJSON(_ arguments: [String]) throws {
        let figures = try JSONBenchmark(arguments).run()
        let goals =
            JSONFigures.goals(of: JSONSample.all, in: figures) + JSONFigures.goals(of: JSONShape.all, in: figures)
        print(figures.text + "\ngoals\n" + GoalTable(goals: goals, isWhole: false).text, terminator: "")
    }

    private static func measure(_ options: Options) throws {
        if options.wantsList { return print(Options.names.joined(separator: "\n")) }
        let date = Date()
        try OutputFolder.make(options.output)
        var harness = try Harness(options)
        try harness.run()
        print(
            Report(
                table: harness.table, server: harness.serverName, rounds: options.rounds,
                isWhole: options.cases.isEmpty
            ).text)
        if options.wantsMarkdown { print(MarkdownTable(table: harness.table).text) }
        if let folder = options.output {
            print("written to", try ResultFile(harness.table, server: harness.serverName, date: date).write(to: folder))
        }
    }
}
