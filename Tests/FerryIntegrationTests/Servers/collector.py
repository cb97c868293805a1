"""An OpenTelemetry collector that accepts only valid OTLP messages.

collector.py PORT RECORD: responds to JSON at /v1/traces and /v1/metrics with 200, or with 400 and the reason, and writes
a line of JSON for each span and each point of a histogram to RECORD.
"""

import http.server
import json
import socketserver
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MESSAGES = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


def check_ids(value):
    """Ids are hexadecimal in OTLP, but base64 in protobuf's general JSON form."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key in ("traceId", "spanId", "parentSpanId"):
                length = 32 if key == "traceId" else 16
                if len(bytes.fromhex(member)) * 2 not in ((length, 0) if key == "parentSpanId" else (length,)):
                    raise ValueError(f"{key}: {member}")
            else:
                check_ids(member)
    elif isinstance(value, list):
        for member in value:
            check_ids(member)


def attributes(owner):
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in owner.attributes}


def lines(message):
    for resource in getattr(message, "resource_spans", []):
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {"span": span.name, "kind": span.kind, "status": span.status.code,
                       "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
                       "resource": attributes(resource.resource), "attributes": attributes(span)}
    for resource in getattr(message, "resource_metrics", []):
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.histogram.data_points:
                    if len(point.bucket_counts) != len(point.explicit_bounds) + 1:
                        raise ValueError("as many bounds as buckets")
                    if sum(point.bucket_counts) != point.count:
                        raise ValueError("the buckets are not the count")
                    yield {"metric": metric.name, "unit": metric.unit, "count": point.count,
                           "temporality": metric.histogram.aggregation_temporality,
                           "attributes": attributes(point)}


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            if self.headers["Content-Type"] != "application/json":
                raise ValueError("it is not JSON")
            check_ids(json.loads(body))
            message = json_format.Parse(body, MESSAGES[self.path]())
            made = "".join(json.dumps(line) + "\n" for line in lines(message))
        except Exception as error:
            status, text = 400, repr(error)
            made = json.dumps({"fault": text}) + "\n"
        else:
            status, text = 200, "{}"
        with open(sys.argv[2], "a") as record:
            record.write(made)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def server_bind(self):
        # The inherited method looks up the host's name, which may take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "collector", self.server_address[1]


Server(("127.0.0.1", int(sys.argv[1])), Collector).serve_forever()
