// swift-tools-version: 6.2
import PackageDescription

let ferry = Target.Dependency.product(name: "Ferry", package: "ferry")

let package = Package(
    name: "examples",
    dependencies: [.package(name: "ferry", path: "..")],
    targets: [
        .executableTarget(name: "FirstRequest", dependencies: [ferry]),
        .executableTarget(name: "ResumableDownload", dependencies: [ferry]),
        .executableTarget(name: "ManyAtOnce", dependencies: [ferry]),
        .executableTarget(name: "WhereTimeGoes", dependencies: [ferry]),
        .testTarget(
            name: "TokenRefreshTests", dependencies: [ferry, .product(name: "FerryTesting", package: "ferry")]),
    ]
)
