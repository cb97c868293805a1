// The messages of OTLP 1.x in their JSON form: 64-bit numbers are strings, ids are hexadecimal
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).

struct OTLPAttribute: Encodable, Sendable {
    /// A separate type instead of a nested container, because most of an export is attributes.
    enum Value: Encodable, Sendable {
        case text(String)
        case number(Int)
        case flag(Bool)

        private enum Key: String, CodingKey { case stringValue, intValue, boolValue }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            switch self {
            case .text(let text): try container.encode(text, forKey: .stringValue)
            case .number(let number): try container.encode(String(number), forKey: .intValue)
            case .flag(let flag): try container.encode(flag, forKey: .boolValue)
            }
        }
    }

    let key: String
    let value: Value

    init(_ key: String, _ text: String) { (self.key, value) = (key, .text(text)) }
    init(_ key: String, _ number: Int) { (self.key, value) = (key, .number(number)) }
    init(_ key: String, _ flag: Bool) { (self.key, value) = (key, .flag(flag)) }
}

struct OTLPResource: Encodable, Sendable {
    let attributes: [OTLPAttribute]

    init(_ configuration: OTLPConfiguration) {
        attributes =
            [OTLPAttribute("service.name", configuration.serviceName)]
            + configuration.resource.sorted { $0.key < $1.key }.map { OTLPAttribute($0.key, $0.value) } + [
                OTLPAttribute("telemetry.sdk.name", "ferry"), OTLPAttribute("telemetry.sdk.language", "swift"),
            ]
    }
}

struct OTLPScope: Encodable, Sendable { var name = "ferry" }

// MARK: Metrics

struct OTLPMetrics: Encodable, Sendable {
    struct Resource: Encodable, Sendable {
        let resource: OTLPResource
        let scopeMetrics: [Scope]
    }

    struct Scope: Encodable, Sendable {
        let scope: OTLPScope
        let metrics: [Metric]
    }

    struct Metric: Encodable, Sendable {
        let name: String
        let description: String
        let unit: String
        let histogram: Histogram
    }

    struct Histogram: Encodable, Sendable {
        /// 2 = cumulative.
        var aggregationTemporality = 2
        let dataPoints: [Point]
    }

    struct Point: Encodable, Sendable {
        let attributes: [OTLPAttribute]
        let startTimeUnixNano: String
        let timeUnixNano: String
        let count: String
        let sum: Double
        let bucketCounts: [String]
        let explicitBounds: [Double]
        let max: Double
    }

    let resourceMetrics: [Resource]

    init(_ resource: OTLPResource, _ metrics: [Metric]) {
        resourceMetrics = [Resource(resource: resource, scopeMetrics: [Scope(scope: OTLPScope(), metrics: metrics)])]
    }
}
