// swift-tools-version: 6.2
import PackageDescription

// A separate package, for `make check-traits`: Ferry's adapters to packages of the Swift ecosystem, built and tested
// like by a user. The check copies it out of the tree and says for which traits packages are available.

struct Adapter {
    let trait: String
    /// The package for a trait, its oldest version that the tests can use, and the products that they use.
    let package: String
    let version: Version
    let products: [String]
}

let adapters = [
    Adapter(trait: "Logging", package: "swift-log", version: "1.10.0", products: ["Logging", "InMemoryLogging"]),
    Adapter(trait: "Metrics", package: "swift-metrics", version: "2.5.0", products: ["CoreMetrics", "MetricsTestKit"]),
    Adapter(
        trait: "Tracing", package: "swift-distributed-tracing", version: "1.3.0",
        products: ["Tracing", "InMemoryTracing"]),
    Adapter(trait: "HTTPTypes", package: "swift-http-types", version: "1.0.0", products: ["HTTPTypes"]),
    Adapter(trait: "OpenAPI", package: "swift-openapi-runtime", version: "1.7.0", products: ["OpenAPIRuntime"]),
]

let wanted = Set((Context.environment["FERRY_TRAITS"] ?? "").split(separator: " ").map(String.init))
let used = adapters.filter { wanted.contains($0.trait) }

let package = Package(
    name: "traits",
    dependencies: [.package(name: "ferry", path: "../..", traits: Set(used.map { .init(name: $0.trait) }))]
        + used.map { .package(url: "https://github.com/apple/\($0.package).git", from: $0.version) },
    targets: [
        .testTarget(
            name: "TraitTests",
            dependencies: [
                .product(name: "Ferry", package: "ferry"), .product(name: "FerryTesting", package: "ferry"),
            ]
                + used.map { .product(name: "Ferry\($0.trait)", package: "ferry") }
                + used.flatMap { adapter in
                    adapter.products.map { .product(name: $0, package: adapter.package) }
                },
            swiftSettings: [.treatAllWarnings(as: .error)] + used.map { .define($0.trait) })
    ]
)
