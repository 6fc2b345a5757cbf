"""The metrics arrive at a StatsD server, through Airflow's own settings."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest

from airflow_provider_service._airflow import metrics
from airflow_provider_service.simulator import ServiceSimulator

from .workflows import DONE, put, wait, webhook

pytestmark = pytest.mark.real_time  # a process of its own waits

KINDS = {metrics.WAITS_ACTIVE: "g", metrics.POLL_DURATION: "ms"}
NAMES = {value for name, value in vars(metrics).items() if name.isupper()}


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_every_metric_arrives_at_a_statsd_server(simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(2), DONE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.2)
        settings = {"STATSD_ON": "True", "STATSD_HOST": "127.0.0.1", "STATSD_PORT": str(server.getsockname()[1])}
        # A process of its own: Airflow reads these settings once.
        process = subprocess.run(
            [sys.executable, "-m", "tests.runs.statsd_process", workflow_id],
            env={**os.environ, **{f"AIRFLOW__METRICS__{name}": value for name, value in settings.items()}},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        lines = received(server)

    assert process.returncode == 0, process.stderr[-2000:]
    found: dict[str, list[tuple[float, str]]] = {}
    for line in lines:
        if match := re.fullmatch(r"airflow\.(service\.[\w.-]+):([\d.]+)\|(c|g|ms)", line):
            name = match[1]
            name = metrics.WAITS_ACTIVE if name.startswith(f"{metrics.WAITS_ACTIVE}.") else name
            found.setdefault(name, []).append((float(match[2]), match[3]))
    assert set(found) == NAMES, lines
    assert {name: {kind for _, kind in values} for name, values in found.items()} == {
        name: {KINDS.get(name, "c")} for name in NAMES
    }
    assert found[metrics.RUNS_STARTED] == [(1, "c")]
    assert found[metrics.ROWS_DELETED] == [(3, "c")]
    assert found[metrics.WAITS_ACTIVE][-1] == (0, "g")


def received(server: socket.socket) -> list[str]:
    """What has arrived."""
    lines = []
    while True:
        try:
            lines.append(server.recv(65_535).decode())
        except TimeoutError:
            return lines
