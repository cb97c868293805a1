internal import Glibc

/// The entry point of the process. It is separate, because the rest is a library for tests with their own `main()`.
@main
enum EntryPoint {
    static func main() async {
        // If nobody reads its output, it still writes its files. Programs that it starts get the default.
        signal(SIGPIPE, SIG_IGN)
        // Before anything changes what happens at a signal.
        _ = InterruptionFlag.ignored
        Console.openStreams()
        for index in 1..<max(1, Int(CommandLine.argc)) {
            // Swift would repair it, and the command would use another file, or send other bytes.
            guard let argument = CommandLine.unsafeArgv[index], String(validatingCString: argument) == nil else {
                continue
            }
            Console.error("ferry: argument \(index) is not valid UTF-8\n")
            exit(ExitCode.usage.rawValue)
        }
        exit(await Main.run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }
}
