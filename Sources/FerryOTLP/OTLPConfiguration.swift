public import Ferry

/// The configuration of an ``OTLPExporter``: where, what and how often to export.
public struct OTLPConfiguration: Sendable {
    /// The collector's base URL, to which `/v1/traces` and `/v1/metrics` are appended. The default is
    /// `http://localhost:4318`, the port of OTLP over HTTP.
    public var endpoint = "http://localhost:4318"

    /// The header fields of every export, for a collector that requires a key. The default is none.
    public var headers = Headers()

    /// The name of the service, for the resource attribute `service.name`. The default is `unknown_service`.
    public var serviceName = "unknown_service"

    /// Further resource attributes, like `deployment.environment.name`. The default is none.
    public var resource: [String: String] = [:]

    /// The share of new traces that is recorded, from 0 to 1. A run in a trace of another service is recorded if that
    /// trace is sampled. The default is 1.
    public var sampledFraction = 1.0

    /// Whether spans are exported. Every run then sends `traceparent`, unless `Request.propagatesTrace` is `false`;
    /// otherwise only a run in a trace of another service does. The default is `true`.
    public var exportsTraces = true

    /// Whether the histogram `http.client.request.duration` is exported. The default is `true`.
    public var exportsMetrics = true

    /// The maximum time before spans are exported. The default is 5 seconds.
    public var spanInterval: Duration = .seconds(5)

    /// The interval of metrics exports. The default is 60 seconds.
    public var metricsInterval: Duration = .seconds(60)

    /// The maximum number of runs that wait for their export; further runs are dropped and counted. The default is
    /// 2,048.
    public var maxQueuedRuns = 2_048

    /// The maximum number of runs in one export. The default is 512.
    public var maxBatch = 512

    /// The maximum number of attribute sets in the histogram; further ones are counted as `otel.metric.overflow`. The
    /// default is 1,000.
    public var maxSeries = 1_000

    /// The upper bounds of the histogram's buckets in seconds, ascending. The default is the recommendation of
    /// OpenTelemetry's semantic conventions for `http.client.request.duration`.
    public var durationBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

    /// The deadline of one export, including its retries. The default is 10 seconds.
    public var deadline: Duration = .seconds(10)

    /// The configuration of the exporting agent, for example its TLS settings and proxy. Its observers and its cache
    /// are not used.
    public var network = NetworkConfiguration()

    /// Creates a configuration with the defaults.
    public init(serviceName: String = "unknown_service") { self.serviceName = serviceName }

    /// Creates a configuration from OpenTelemetry's environment variables: `OTEL_SERVICE_NAME`,
    /// `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`,
    /// `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds), `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`,
    /// `OTEL_BSP_SCHEDULE_DELAY` and `OTEL_METRIC_EXPORT_INTERVAL` (milliseconds). If a variable is missing or invalid,
    /// the default applies. The samplers are `always_on`, `always_off` and `traceidratio`, also with the prefix
    /// `parentbased_`, which makes no difference: a run in a trace of another service always follows that trace. The
    /// argument counts for `traceidratio` only.
    public init(environment: [String: String]) {
        func milliseconds(_ name: String) -> Duration? {
            environment[name].flatMap(Int64.init).flatMap { $0 > 0 ? .milliseconds($0) : nil }
        }
        resource = Self.pairs(environment["OTEL_RESOURCE_ATTRIBUTES"])
        serviceName = resource.removeValue(forKey: "service.name") ?? serviceName
        if let name = environment["OTEL_SERVICE_NAME"], !name.isEmpty { serviceName = name }
        if let endpoint = environment["OTEL_EXPORTER_OTLP_ENDPOINT"], !endpoint.isEmpty { self.endpoint = endpoint }
        for (name, value) in Self.pairs(environment["OTEL_EXPORTER_OTLP_HEADERS"]).sorted(by: { $0.key < $1.key }) {
            headers.append(name, value)
        }
        switch environment["OTEL_TRACES_SAMPLER"]?.lowercased() {
        case "always_off", "parentbased_always_off": sampledFraction = 0
        case "traceidratio", "parentbased_traceidratio":
            let fraction = environment["OTEL_TRACES_SAMPLER_ARG"].flatMap(Double.init)
            if let fraction, (0...1).contains(fraction) { sampledFraction = fraction }
        default: break
        }
        deadline = milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT") ?? deadline
        spanInterval = milliseconds("OTEL_BSP_SCHEDULE_DELAY") ?? spanInterval
        metricsInterval = milliseconds("OTEL_METRIC_EXPORT_INTERVAL") ?? metricsInterval
    }

    /// `key=value` pairs, separated by commas and percent-encoded.
    private static func pairs(_ text: String?) -> [String: String] {
        var made: [String: String] = [:]
        for pair in (text ?? "").split(separator: ",") {
            guard let sign = pair.firstIndex(of: "=") else { continue }
            let key = trimmed(pair[..<sign])
            let value = trimmed(pair[pair.index(after: sign)...])
            if !key.isEmpty { made[decoded(key)] = decoded(value) }
        }
        return made
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return text
    }

    private static func decoded(_ text: Substring) -> String {
        String(validating: PercentEncoding.decoded(text.utf8), as: UTF8.self) ?? String(text)
    }
}
