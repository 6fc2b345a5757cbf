"""Where a deployment sends its metrics, traces and lineage: into files below a folder."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType


class Telemetry:
    """Receives StatsD's metrics and OpenTelemetry's traces while it is open; OpenLineage writes a file for each event.

    :param folder: of the files; created.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "lineage").mkdir(parents=True)
        self._metrics = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._metrics.bind(("127.0.0.1", 0))
        self._traces = ThreadingHTTPServer(("127.0.0.1", 0), _appending_to(folder / "traces"))

    def environment(self) -> Mapping[str, str]:
        """The variables that let a process of Airflow send everything."""
        lineage = {"type": "file", "log_file_path": f"{self.folder}/lineage/event", "append": False}
        return {
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(self._metrics.getsockname()[1]),
            "AIRFLOW__TRACES__OTEL_ON": "True",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(lineage),
            "OTEL_TRACES_EXPORTER": "otlp_proto_http",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._traces.server_address[1]}",
            "OTEL_SERVICE_NAME": "stack",
        }

    def read(self, name: str) -> bytes:
        """All that a folder or a file holds so far."""
        place = self.folder / name
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        return b"".join(file.read_bytes() for file in files if file.exists())

    def __enter__(self) -> Telemetry:
        for work in (self._keep_metrics, self._traces.serve_forever):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._traces.shutdown()
        self._traces.server_close()
        self._metrics.close()

    def _keep_metrics(self) -> None:
        with suppress(OSError), (self.folder / "metrics").open("ab", buffering=0) as file:
            while True:
                file.write(self._metrics.recv(65_536) + b"\n")


def _appending_to(path: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with path.open("ab") as file:
                file.write(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    return Handler
