/// What the manual page has beside the tables of options.
enum ManualExamples {
    /// As they are typed, and what they do.
    static let commands: [(line: String, meaning: String)] = [
        (
            "ferry fetch http://127.0.0.1:8080/json --status 200 --schema shape.json",
            "Prints the body of an answer that must be as a schema says."
        ),
        (
            "ferry download https://example.com/x.iso --segments 4 --sha256 HEX",
            "Loads a file in four parts, and checks it. The same command goes on after a ctrl-C."
        ),
        (
            "ferry run --serve --html run.html Examples/checkout.json",
            "Runs a plan on a server of its own, with a page."
        ),
        ("ferry serve --port 8080 --script Examples/Serve/faults.json", "Runs a server that misbehaves on some paths."),
        (
            "ferry bench http://127.0.0.1:8080/ -c 256 -z 30 -w 2 --json=before.json",
            "256 requests at once for half a minute, after two seconds to warm up; the figures go to a file, too."
        ),
        (
            "ferry bench http://127.0.0.1:8080/ -z 30 -w 2 --baseline before.json --fail-if 'p99>+10%'",
            "Ends with 4 when the answers are slower than they were."
        ),
    ]

    /// What is looked at, and for what.
    static let environment: [(name: String, meaning: String)] = [
        ("NO_COLOR", "With any value, no text is bold."),
        ("TERM", "Where it is dumb, or not there, no line on the terminal is written anew."),
        (
            "http_proxy, https_proxy, all_proxy, no_proxy",
            "Proxies, and hosts that are reached without one; with --proxy-env only."
        ),
        ("Any other", "Plans read those that they name, as {{env.NAME}}."),
    ]
}
