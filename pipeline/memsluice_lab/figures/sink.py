"""An OTLP/HTTP endpoint that counts the spans it is sent: prints its port, and at the end of its input the count."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Sink(BaseHTTPRequestHandler):
    """Answers every export with success."""

    seen = 0

    def do_POST(self) -> None:
        """Count the spans of a request."""
        request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        Sink.seen += sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    print(server.server_port, flush=True)
    Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    print(Sink.seen, flush=True)
