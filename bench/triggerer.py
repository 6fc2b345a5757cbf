"""Measure the cost of many deferred sensors in a real triggerer: ``python -m bench.triggerer``.

It starts the deployment of ``make test-stack``, in which one triggerer takes all waits, and prints a table for
docs/benchmarks.md. A worker first has to start each sensor, which takes longer than the measurement.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.polling import wait_until
from tests.stack.deployment import Deployment
from tests.stack.processes import Component
from tests.stack.simulated import SimulatedService
from tests.stack.workflows import endless

ROOT = Path(__file__).resolve().parents[1]
MIB = 2**20
# Most executions are running, as in bench.waiting.
STATUSES = ("running",) * 16 + ("waiting",) * 3 + ("new",)
DEFERRAL_SECONDS = 3 * 3600
# By then connections, threads and caches exist.
SETTLING_SECONDS = 30.0
HEADER = (
    "| sensors | minutes | requests a minute | % of a core | memory at start, MiB | at end, MiB | warnings in its log |"
)


@dataclass
class Measured:
    """The resources that one triggerer used, and how the sensors ended."""

    requests_a_minute: float
    cpu_percent: float
    first_mib: float
    last_mib: float
    warnings: list[str]
    state: str


def main() -> None:
    """Measure, and fail when a sensor fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.triggerer", description=__doc__)
    parser.add_argument("--sensors", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    found = run(options.sensors, options.minutes, say)
    print(f"{HEADER}\n|{' --- |' * (HEADER.count('|') - 1)}")
    print(
        f"| {options.sensors:,} | {options.minutes:g} | {found.requests_a_minute:.0f} | {found.cpu_percent:.1f} "
        f"| {found.first_mib:.0f} | {found.last_mib:.0f} | {len(found.warnings)} |"
    )
    for line in found.warnings[:20]:
        print(f"warning: {line}")
    if found.state != "success":
        parser.exit(1, f"The DAG run ended as {found.state}\n")


def run(sensors: int, minutes: float, progress: Callable[[str], None]) -> Measured:
    """Let one triggerer wait for a number of executions for some minutes, and then let all of them end."""
    with SimulatedService() as service:
        workflow_id = service.create_workflow("Bench", endless())
        ids = [service.start_execution(workflow_id, STATUSES[number % len(STATUSES)]) for number in range(sensors)]
        folder = ROOT / ".stack" / "bench"
        deployment = Deployment(folder, [ROOT / "tests" / "stack" / "dags"], concurrency=4, progress=progress)
        with deployment:
            deployment["triggerer-2"].end()
            deployment.api.set_connection(service.connection())
            deployment.api.unpause("stack_waits")
            run_id = deployment.api.trigger("stack_waits", {"execution_ids": ids})
            _wait_until_deferred(deployment, sensors, progress)
            measured = _measure(deployment["triggerer-1"], service, minutes, progress)
            for one in ids:
                service.finish(one)
            progress("the executions have ended, the sensors are resumed")
            measured.state = deployment.api.wait_for_run("stack_waits", run_id, seconds=DEFERRAL_SECONDS)
            return measured


def _wait_until_deferred(deployment: Deployment, sensors: int, progress: Callable[[str], None]) -> None:
    reported = 0.0

    def all_deferred() -> bool:
        nonlocal reported
        [[count]] = deployment.query(
            "SELECT count(*) FROM task_instance ti JOIN trigger t ON ti.trigger_id = t.id"
            " WHERE ti.state = 'deferred' AND t.triggerer_id IS NOT NULL"
        )
        if time.monotonic() - reported > 60:
            reported = time.monotonic()
            progress(f"{count} of {sensors} sensors are deferred")
        return int(count) == sensors

    wait_until(all_deferred, seconds=DEFERRAL_SECONDS, what="all sensors to be deferred", interval=2)


def _measure(
    triggerer: Component, service: SimulatedService, minutes: float, progress: Callable[[str], None]
) -> Measured:
    time.sleep(SETTLING_SECONDS)
    written = triggerer.log.stat().st_size
    requests, begin = service.count_requests(), time.monotonic()
    cpu, memory = triggerer.usage()
    progress(f"measuring for {minutes:g} minutes")
    time.sleep(60 * minutes)
    triggerer.check()
    last_cpu, last_memory = triggerer.usage()
    seconds = time.monotonic() - begin
    with triggerer.log.open(errors="replace") as log:
        log.seek(written)
        warnings = [line.strip() for line in log if re.search(r"\b(warning|error|critical)\b", line, re.IGNORECASE)]
    return Measured(
        requests_a_minute=60 * (service.count_requests() - requests) / seconds,
        cpu_percent=100 * (last_cpu - cpu) / seconds,
        first_mib=memory / MIB,
        last_mib=last_memory / MIB,
        warnings=warnings,
        state="",
    )


def say(line: str) -> None:
    """Print progress in addition to the table."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
