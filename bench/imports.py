"""Measure what importing each operator, sensor, transfer, notifier and event trigger costs over ``BaseOperator``.

``python -m bench.imports`` prints a table: milliseconds, which other work on the machine lengthens, and how many
modules and bytes of bytecode are loaded, which are the same on every machine. For comparison it includes ``requests``
and the client.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent / "airflow_provider_service"
KINDS = ("operators", "sensors", "transfers", "notifications")
TRIES = 9
PROGRAM = """
import json, os, sys, time
from airflow.sdk import BaseOperator
before = set(sys.modules)
begin, cpu = time.perf_counter(), time.process_time()
import {module}
seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
sizes = {{}}
for name in set(sys.modules) - before:
    cached = getattr(sys.modules[name], "__cached__", None)
    sizes[name] = os.path.getsize(cached) if cached else 0
print(json.dumps([seconds * 1000, cpu * 1000, sizes]))
"""


def modules() -> list[str]:
    """The modules that DAG files import, and two that they must not import."""
    parts = [path for kind in KINDS for path in (PACKAGE / kind).glob("[!_]*.py")]
    named = [f"airflow_provider_service.{path.parent.name}.{path.stem}" for path in sorted(parts)]
    return [*named, "airflow_provider_service.triggers.events", "requests", "airflow_provider_service.hooks.service"]


def runs_of(module: str, environment: dict[str, str]) -> list[Any]:
    """Milliseconds, milliseconds of CPU, and sizes of the loaded modules by name, of several tries in new processes."""
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        for _ in range(TRIES + 1)
    ]
    # The first try compiles the modules that the others load, as a DAG processor does once after an installation.
    return [json.loads(run.stdout.splitlines()[-1]) for run in runs[1:]]


def row(module: str, runs: list[Any]) -> str:
    """A line of the table."""
    seconds, cpu = (sorted(run[column] for run in runs) for column in (0, 1))
    sizes: dict[str, int] = runs[-1][2]
    own = [size for name, size in sizes.items() if name.startswith("airflow_provider_service")]
    others = [size for name, size in sizes.items() if not name.startswith("airflow_provider_service")]
    loaded = " | ".join(f"{len(part)} | {sum(part) / 1024:.0f}" for part in (own, others))
    return f"| `{module}` | {median(seconds):.1f} | {seconds[0]:.1f}-{seconds[-1]:.1f} | {median(cpu):.1f} | {loaded} |"


def main() -> None:
    """Measure and print."""
    print("| module | median ms | range | median ms of CPU | own modules | KiB | others' modules | KiB |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONWARNINGS": "ignore"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for module in modules():
            print(row(module, runs_of(module, environment)), flush=True)


if __name__ == "__main__":
    main()
