// swift-tools-version: 6.2
import PackageDescription

/// The fuzz target, apart from Ferry's own package: its `main` is the fuzzer's, so that it only builds with
/// `--sanitize=fuzzer`.
let package = Package(
    name: "fuzz",
    dependencies: [.package(name: "ferry", path: "../..")],
    targets: [
        .executableTarget(
            name: "FuzzJSON", dependencies: [.product(name: "FerryJSON", package: "ferry")],
            swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-parse-as-library"])])
    ]
)
