/// `ferry help`: what `--help` says, and the manual page.
enum HelpCommand: Subcommand {
    static let name = "help"
    static let summary = "Explains the command or one of its subcommands"
    static let synopsis = "[SUBCOMMAND] [OPTIONS]"
    static let optionGroups = [
        OptionGroup([CommandOption("man", "Prints the manual page of all of it, in the form that man(1) reads")])
    ]
    static let notes = """
        The manual page is for a folder that man looks into:
          ferry help --man > ~/.local/share/man/man1/ferry.1
        """
    static var operands: CommandOperands { .words(Main.subcommands.map { $0.name }) }

    static func run(_ arguments: ParsedArguments) throws -> ExitCode {
        if arguments.operands.count > 1 { throw UsageError("one subcommand, not also '\(arguments.operands[1])'") }
        if arguments.has("man") {
            if let operand = arguments.operands.first { throw UsageError("--man and '\(operand)' exclude each other") }
            Console.out(ManualPage(of: Main.subcommands).text)
        } else if let name = arguments.operands.first {
            guard let command = Main.subcommands.first(where: { $0.name == name }) else {
                throw UsageError("there is no subcommand '\(name)'")
            }
            Console.out(command.help(columns: Console.outColumns))
        } else {
            Console.out(Main.help(columns: Console.outColumns))
        }
        return .success
    }
}
