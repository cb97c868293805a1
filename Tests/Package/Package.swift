// swift-tools-version: 6.2
import PackageDescription

// Tests/Package/run copies this package out of the tree and says where Ferry lies.
let ferry = Context.environment["FERRY_PATH"] ?? "../.."

let package = Package(
    name: "outside",
    dependencies: [.package(name: "ferry", path: ferry)],
    targets: [
        .executableTarget(
            name: "outside",
            dependencies: [
                .product(name: "Ferry", package: "ferry"),
                .product(name: "FerryTesting", package: "ferry"),
            ],
            path: "Sources/Outside")
    ]
)
