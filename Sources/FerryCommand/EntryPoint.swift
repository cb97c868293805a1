internal import Glibc

/// Where the process begins. Apart from the rest, which is a library to those who bring a `main()` of their own.
@main
enum EntryPoint {
    static func main() async {
        Console.openStreams()
        exit(await Main.run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }
}
