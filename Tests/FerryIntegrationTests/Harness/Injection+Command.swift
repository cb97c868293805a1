import Injection

extension Injection {
    /// Runs the command; what does not end within half a minute is killed, which is the code 137.
    func run(_ arguments: [String]) throws -> FerryCommand.Outcome {
        try FerryCommand.run(arguments, environment: environment, wrapper: ["timeout", "-s", "KILL", "30"])
    }
}
