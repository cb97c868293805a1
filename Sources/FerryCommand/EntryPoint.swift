internal import Glibc

/// The entry point of the process. It is separate, because the rest is a library for tests with their own `main()`.
@main
enum EntryPoint {
    static func main() async {
        Console.openStreams()
        exit(await Main.run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }
}
