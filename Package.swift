// swift-tools-version: 6.2
import PackageDescription

/// Every Swift target of the package is built with the same strictness.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

/// The test modules and the Swift modules that they share are never optimized: `make test` builds with the release
/// configuration, and these would take longer to compile than the tests then save.
let tests: [SwiftSetting] = strict + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// Every C target is strict, too; `_GNU_SOURCE` is for `accept4`, `epoll` and `memmem`.
let strictC: [CSetting] = [
    .enableWarning("all"),
    .enableWarning("extra"),
    .enableWarning("strict-prototypes"),
    .treatAllWarnings(as: .error),
    .define("_GNU_SOURCE"),
]

/// The C++ target. simdjson's pkg-config file cannot be used, because SwiftPM refuses the definition in it; it is
/// repeated here.
let strictCXX: [CXXSetting] = [
    .enableWarning("all"),
    .enableWarning("extra"),
    .treatAllWarnings(as: .error),
    .define("_GNU_SOURCE"),
    .define("SIMDJSON_THREADS_ENABLED", to: "1"),
]

/// The fuzz targets.
let fuzzed: [Target.Dependency] = [
    "CCoreParts", "Ferry", "FerryCache", "FerryCommand", "FerryJSON", "FerryTransport",
]

let package = Package(
    name: "ferry",
    products: [
        .library(name: "Ferry", targets: ["Ferry"]),
        .library(name: "FerryJSON", targets: ["FerryJSON"]),
        .library(name: "FerryOTLP", targets: ["FerryOTLP"]),
        .library(name: "FerryXML", targets: ["FerryXML"]),
        .library(name: "FerryRedis", targets: ["FerryRedis"]),
        .library(name: "FerryTesting", targets: ["FerryTesting"]),
        .library(name: "FerryLogging", targets: ["FerryLogging"]),
        .library(name: "FerryMetrics", targets: ["FerryMetrics"]),
        .library(name: "FerryTracing", targets: ["FerryTracing"]),
        .library(name: "FerryHTTPTypes", targets: ["FerryHTTPTypes"]),
        .library(name: "FerryOpenAPI", targets: ["FerryOpenAPI"]),
        .executable(name: "ferry", targets: ["FerryCommand"]),
    ],
    traits: [
        // All are off by default. Dependencies of traits that are off are not fetched: the package then has none.
        .trait(name: "Logging", description: "FerryLogging: a log sink that writes to a Logger of swift-log"),
        .trait(name: "Metrics", description: "FerryMetrics: an observer that records into swift-metrics"),
        .trait(name: "Tracing", description: "FerryTracing: an observer that makes spans of swift-distributed-tracing"),
        .trait(name: "HTTPTypes", description: "FerryHTTPTypes: conversions from and to swift-http-types"),
        .trait(
            name: "OpenAPI", description: "FerryOpenAPI: a ClientTransport of swift-openapi-runtime",
            enabledTraits: ["HTTPTypes"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.2.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-openapi-runtime.git", from: "1.7.0"),
    ],
    targets: [
        // System libraries: Debian packages with pkg-config files.
        .systemLibrary(
            name: "Clibuv", path: "CShims/Clibuv", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .systemLibrary(
            name: "Clibcurl", path: "CShims/Clibcurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(
            name: "Cnghttp2", path: "CShims/Cnghttp2", pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "Czlib", path: "CShims/Czlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(
            name: "Cbrotli", path: "CShims/Cbrotli", pkgConfig: "libbrotlidec", providers: [.apt(["libbrotli-dev"])]),
        .systemLibrary(name: "Czstd", path: "CShims/Czstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(
            name: "COpenSSL", path: "CShims/COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "Csqlite3", path: "CShims/Csqlite3", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        // Its pkg-config file cannot be used, because SwiftPM refuses the definition in it. It also provides
        // `sys/eventfd.h`, which Swift's Glibc module lacks.
        .systemLibrary(name: "Chiredis", path: "CShims/Chiredis", providers: [.apt(["libhiredis-dev"])]),
        // The kernel's routes: Swift's Glibc module lacks `linux/rtnetlink.h`.
        .systemLibrary(name: "Cnetlink", path: "CShims/Cnetlink"),
        // Extended attributes of files: the module also lacks `sys/xattr.h`.
        .systemLibrary(name: "Cxattr", path: "CShims/Cxattr"),
        // `preadv2` of `sys/uio.h`, which the module lacks, too.
        .systemLibrary(name: "Cuio", path: "CShims/Cuio"),

        // C: the transfer core, and the server for tests and benchmarks.
        .target(
            name: "CFerry",
            dependencies: ["Clibuv", "Clibcurl", "Cnghttp2", "Czlib", "Cbrotli", "Czstd", "COpenSSL"],
            path: "CShims/CFerry",
            cSettings: strictC + [.headerSearchPath(".")]),
        .target(
            name: "CLoopback", dependencies: ["Clibuv", "COpenSSL", "Czlib", "Cbrotli", "Czstd"],
            path: "CShims/CLoopback",
            cSettings: strictC, linkerSettings: [.linkedLibrary("brotlienc")]),

        // C++ behind a C header: the JSON parser, and the regular expressions of schemas.
        .target(
            name: "CFerryJSON", path: "CShims/CFerryJSON", cxxSettings: strictCXX,
            linkerSettings: [.linkedLibrary("simdjson"), .linkedLibrary("re2")]),

        // Swift, lowest layer first. This one replaces a type in builds for the thread sanitizer.
        .target(name: "FerrySynchronization", swiftSettings: strict),
        .target(name: "FerryJSON", dependencies: ["CFerryJSON", "FerrySynchronization"], swiftSettings: strict),
        .target(
            name: "FerryCache", dependencies: ["Csqlite3", "COpenSSL", "FerrySynchronization"], swiftSettings: strict),
        .target(name: "FerryTransport", dependencies: ["CFerry", "FerrySynchronization"], swiftSettings: strict),
        .target(
            name: "Ferry",
            dependencies: [
                "FerrySynchronization", "FerryTransport", "FerryJSON", "FerryCache", "Cnetlink", "Cuio", "Cxattr",
                "COpenSSL",
            ],
            swiftSettings: strict),
        .target(
            name: "FerryOTLP", dependencies: ["Ferry", "FerryJSON", "FerrySynchronization", "FerryTransport"],
            swiftSettings: strict),
        // A module of its own, so that Ferry does not depend on FoundationXML and its libxml2.
        .target(name: "FerryXML", dependencies: ["Ferry"], swiftSettings: strict),
        // A module of its own, so that Ferry does not depend on hiredis.
        .target(
            name: "FerryRedis", dependencies: ["Chiredis", "COpenSSL", "Czstd", "FerryCache", "FerrySynchronization"],
            swiftSettings: strict),
        .target(
            name: "FerryTesting", dependencies: ["CLoopback", "Ferry", "FerrySynchronization", "FerryTransport"],
            swiftSettings: strict),

        // Adapters of Ferry to packages of the Swift ecosystem: each is empty while its trait is off.
        .target(
            name: "FerryLogging",
            dependencies: [
                "Ferry", .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Logging"])),
            ],
            swiftSettings: strict),
        .target(
            name: "FerryMetrics",
            dependencies: [
                "Ferry", .product(name: "CoreMetrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
            ],
            swiftSettings: strict),
        .target(
            name: "FerryTracing",
            dependencies: [
                "Ferry",
                .product(
                    name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
            ],
            swiftSettings: strict),
        .target(
            name: "FerryHTTPTypes",
            dependencies: [
                "Ferry",
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPTypes"])),
            ],
            swiftSettings: strict),
        .target(
            name: "FerryOpenAPI",
            dependencies: [
                "Ferry", "FerryHTTPTypes",
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["OpenAPI"])),
                .product(
                    name: "OpenAPIRuntime", package: "swift-openapi-runtime", condition: .when(traits: ["OpenAPI"])),
            ],
            swiftSettings: strict),

        // The command. `getopt.h` is in glibc, but not in Swift's Glibc module.
        .systemLibrary(name: "Cgetopt", path: "CShims/Cgetopt"),
        .target(name: "FerryMeasurement", swiftSettings: strict),
        .executableTarget(
            name: "FerryCommand",
            dependencies: [
                "Ferry", "FerryJSON", "FerryRedis", "FerrySynchronization", "FerryTransport", "FerryTesting",
                "FerryMeasurement", "Cgetopt",
            ],
            exclude: ["Schemas"], swiftSettings: strict),

        // Tests, one target for each module. This one collects what the tests of faults note for the manual's table.
        .target(
            name: "FaultTable", dependencies: ["FerrySynchronization", "FerryTransport"], path: "Tests/FaultTable",
            swiftSettings: tests),
        .testTarget(
            name: "CFerryTests",
            dependencies: [
                "CAllocations", "CCoreParts", "CFerry", "COpenSSL", "CWatches", "FerrySynchronization", "FerryTesting",
                "FerryTransport",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "FerryTransportTests", dependencies: ["FerrySynchronization", "FerryTransport", "FerryTesting"],
            swiftSettings: tests),
        // Makes system calls fail in processes of the command.
        .target(
            name: "Injection", dependencies: ["FerryMeasurement"], path: "Tests/Injection", exclude: ["inject.c"],
            swiftSettings: tests),
        // Replaces the system's allocator in the tests' process, and counts.
        .target(name: "CAllocations", path: "Tests/CAllocations", cSettings: strictC),
        // Replaces the system's epoll_ctl() in the tests' process, and makes it fail.
        .target(name: "CWatches", path: "Tests/CWatches", cSettings: strictC),
        // Replaces the system's pwrite() and pread() in the tests' process, and makes them hang.
        .target(name: "CWrites", path: "Tests/CWrites", cSettings: strictC),
        // Replaces the system's resolver in the tests' process, and makes it hang or lie.
        .target(name: "CResolver", path: "Tests/CResolver", cSettings: strictC),
        .testTarget(
            name: "FerryJSONTests", dependencies: ["CAllocations", "CFerryJSON", "FerryJSON"], swiftSettings: tests),
        .testTarget(
            name: "FerryOTLPTests",
            dependencies: [
                "Ferry", "FerryJSON", "FerryOTLP", "FerrySynchronization", "FerryTesting", "FerryTransport",
            ],
            swiftSettings: tests),
        .testTarget(name: "FerryXMLTests", dependencies: ["Ferry", "FerryXML", "FerryTesting"], swiftSettings: tests),
        .testTarget(
            name: "FerryRedisTests",
            dependencies: ["Ferry", "FerryCache", "FerryRedis", "FerrySynchronization", "FerryTesting"],
            swiftSettings: tests),
        // A process that tests of the store in Redis start.
        .executableTarget(
            name: "FerryRedisProbe", dependencies: ["Ferry", "FerryRedis"], path: "Tests/FerryRedisProbe",
            swiftSettings: strict),
        .testTarget(
            name: "FerryCacheTests",
            dependencies: [
                "FaultTable", "FerryCache", "FerryMeasurement", "FerryCacheProbe", "Csqlite3", "FerrySynchronization",
            ],
            swiftSettings: tests),
        // A process that tests of the cache start and kill.
        .executableTarget(
            name: "FerryCacheProbe", dependencies: ["FerryCache"], path: "Tests/FerryCacheProbe", swiftSettings: strict),
        // The tests of Ferry are five modules: the time to compile one grows with the square of its expectations. What
        // they share is a module of its own.
        .target(
            name: "FerryTestSupport",
            dependencies: [
                "FaultTable", "Ferry", "FerryCache", "FerrySynchronization", "FerryTesting", "FerryTransport",
            ],
            path: "Tests/FerryTestSupport", swiftSettings: tests),
        .testTarget(
            name: "FerryTests",
            dependencies: [
                "FaultTable", "Ferry", "FerryJSON", "FerryOTLP", "FerryRedis", "FerrySynchronization",
                "FerryTestSupport", "FerryTesting", "FerryTransport", "FerryXML",
            ],
            exclude: ["Examples/TestingYourCodeExamples.har"], swiftSettings: tests),
        .testTarget(
            name: "FerryBodyTests",
            dependencies: [
                "CCoreParts", "CWrites", "Cxattr", "FaultTable", "Ferry", "FerryJSON", "FerryMeasurement",
                "FerrySynchronization", "FerryTestSupport", "FerryTesting", "FerryTransport",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "FerryCachePolicyTests",
            dependencies: [
                "CAllocations", "FaultTable", "Ferry", "FerryCache", "FerryJSON", "FerrySynchronization",
                "FerryTestSupport", "FerryTesting", "FerryTransport",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "FerryFaultTests",
            dependencies: [
                "CAllocations", "CCoreParts", "CResolver", "CWrites", "FaultTable", "Ferry", "FerrySynchronization",
                "FerryTestSupport", "FerryTesting", "FerryTransport",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "FerryNetworkTests",
            dependencies: [
                "CAllocations", "CResolver", "CWrites", "FaultTable", "Ferry", "FerryJSON", "FerryMeasurement",
                "FerrySynchronization", "FerryTestSupport", "FerryTesting", "FerryTransport",
            ],
            swiftSettings: tests),
        // Properties of all readers of untrusted input: checked over seeds here, and by `make fuzz`.
        .target(
            name: "CCoreParts",
            dependencies: ["CFerry", "Clibuv", "Clibcurl", "Czlib", "Cbrotli", "Czstd", "COpenSSL"],
            path: "Tests/CCoreParts", cSettings: strictC + [.headerSearchPath("../../CShims/CFerry")],
            linkerSettings: [.linkedLibrary("brotlienc")]),
        .testTarget(
            name: "FuzzTests", dependencies: fuzzed, path: "Tests/Fuzz",
            exclude: ["Dictionaries", "Fuzzer.swift", "Seeds", "run"], swiftSettings: tests),
        .testTarget(
            name: "FerryTestingTests", dependencies: ["FerrySynchronization", "FerryTesting"], swiftSettings: tests),
        .testTarget(name: "FerryMeasurementTests", dependencies: ["FerryMeasurement"], swiftSettings: tests),
        .testTarget(
            name: "FerryCommandTests",
            dependencies: [
                "FaultTable", "FerryCommand", "Ferry", "FerryJSON", "FerryMeasurement", "FerrySynchronization",
                "FerryTesting", "Injection",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "FerryIntegrationTests",
            dependencies: [
                "FaultTable", "Ferry", "FerryOTLP", "FerryRedis", "FerryRedisProbe", "FerrySynchronization",
                "FerryTransport", "FerryTesting", "FerryMeasurement", "FerryTestSupport", "Injection", "COpenSSL",
            ],
            exclude: ["Servers"],
            swiftSettings: tests),

        // Measurement.
        .target(
            name: "CCoreDriver", dependencies: ["CFerry"], path: "Benchmarks/CCoreDriver", cSettings: strictC),
        .target(
            name: "CBareClient", dependencies: ["Clibuv", "Clibcurl"], path: "Benchmarks/CBareClient",
            cSettings: strictC),
        .executableTarget(
            name: "FerryBenchmarks",
            dependencies: [
                "Ferry", "FerryCache", "FerryJSON", "FerryOTLP", "FerryRedis", "FerryTesting", "FerryMeasurement",
                "CBareClient", "CCoreDriver",
            ],
            path: "Benchmarks/FerryBenchmarks", swiftSettings: strict),
        .testTarget(name: "FerryBenchmarksTests", dependencies: ["FerryBenchmarks"], swiftSettings: tests),
    ],
    cLanguageStandard: .gnu11,
    cxxLanguageStandard: .cxx17
)

// The fuzzer has a main() of its own: for `make fuzz` there is one executable, and no other is allowed. A file named
// Main.swift, in any case, would make FerryCommand one, regardless of its type here.
if Context.environment["FERRY_FUZZ"] != nil {
    package.products.removeAll { $0.name == "ferry" }
    package.targets.removeAll { $0.type == .test || ["FerryCommand", "FerryBenchmarks"].contains($0.name) }
    package.targets += [
        .target(
            name: "FerryCommand",
            dependencies: [
                "Ferry", "FerryJSON", "FerryRedis", "FerrySynchronization", "FerryTransport", "FerryTesting",
                "FerryMeasurement", "Cgetopt",
            ],
            exclude: ["EntryPoint.swift", "Schemas"], swiftSettings: strict),
        .executableTarget(
            name: "FerryFuzz", dependencies: fuzzed, path: "Tests/Fuzz",
            exclude: ["Dictionaries", "SeedTests.swift", "Seeds", "run"],
            swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])]),
    ]
}

// `swift package dump-symbol-graph` examines all traits and would fetch their dependencies: the manual is built without
// them. It does not need the programs and tests.
if Context.environment["FERRY_DOCS"] != nil {
    let adapters = Set(package.traits.map { "Ferry" + $0.name })
    package.targets.removeAll { adapters.contains($0.name) || $0.type == .test || $0.type == .executable }
    package.products.removeAll { adapters.contains($0.name) || $0.name == "ferry" }
    (package.dependencies, package.traits) = ([], [])
}
