"""Measure the import time of each operator, sensor and event trigger, on top of ``airflow.sdk.BaseOperator``.

``python -m bench.imports`` prints a table. For comparison it includes the client and ``requests``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).resolve().parent.parent / "airflow_provider_service"
TRIES = 9
PROGRAM = """
import sys, time
from airflow.sdk import BaseOperator
start = time.perf_counter()
import {module}
print((time.perf_counter() - start) * 1000)
"""


def modules() -> list[str]:
    """The modules that DAG files import, and two that they must not import."""
    parts = [path for kind in ("operators", "sensors", "notifications") for path in (PACKAGE / kind).glob("[!_]*.py")]
    named = [f"airflow_provider_service.{path.parent.name}.{path.stem}" for path in sorted(parts)]
    return [*named, "airflow_provider_service.triggers.events", "requests", "airflow_provider_service.hooks.service"]


def cost(module: str, environment: dict[str, str]) -> list[float]:
    """The sorted milliseconds of several tries, each in a new process."""
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        for _ in range(TRIES + 1)
    ]
    # The first try compiles the modules that the others load, as a DAG processor does once after an installation.
    return sorted(float(run.stdout.splitlines()[-1]) for run in runs[1:])


def main() -> None:
    """Measure and print."""
    print("| module | median ms | min | max |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONWARNINGS": "ignore"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for module in modules():
            times = cost(module, environment)
            print(f"| `{module}` | {median(times):.1f} | {times[0]:.1f} | {times[-1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
