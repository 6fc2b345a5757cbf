"""Let two real triggerers wait while the service refuses a share of all requests: ``python -m bench.overload``.

2,000 sensors wait for ten minutes at a service that answers 30 % of the requests with 429 and a ``Retry-After`` in a
distant future; meanwhile each triggerer is killed once and started again. After that, all executions end. It prints a
table for docs/benchmarks.md, and fails if a wait was given up.

A worker would need an hour to start the sensors, so it starts one. The others are given what that one has in Airflow's
database when it is deferred, with the id of their own execution.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg2

from bench.triggerer import MIB, ROOT, STATUSES, say
from tests.polling import wait_until
from tests.stack.deployment import Deployment
from tests.stack.simulated import SimulatedService
from tests.stack.workflows import endless

SHARE = 0.3
SETTLING_SECONDS = 60.0
ENDING_SECONDS = 1800
HEADER = "| minute | requests | deferred | memory of the triggerers, MiB | open files | event |"
_OURS = "dag_id = 'stack_waits' AND task_id = 'wait'"
_WAITING = f"FROM task_instance WHERE {_OURS}"


def main() -> None:
    """Measure, and fail when a wait does not end with its execution."""
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--sensors", type=int, default=2000)
    parser.add_argument("--minutes", type=int, default=10)
    options = parser.parse_args()
    ends = run(options.sensors, options.minutes, say)
    print(f"ends of {options.sensors:,} waits: {dict(ends)}")
    if ends != {"succeeded": options.sensors}:
        parser.exit(1, "not all waits ended with their executions\n")


def run(sensors: int, minutes: int, progress: Callable[[str], None]) -> Counter[str]:
    """Wait amid refusals, and return how the waits ended."""
    with SimulatedService() as service:
        workflow_id = service.create_workflow("Bench", endless())
        ids = [service.start_execution(workflow_id, STATUSES[number % len(STATUSES)]) for number in range(sensors)]
        folder = ROOT / ".stack" / "bench"
        extra = {"AIRFLOW__CORE__MAX_MAP_LENGTH": str(sensors)}
        dags = [Path(ROOT, "tests", "stack", "dags")]
        deployment = Deployment(folder, dags, extra=extra, concurrency=1, progress=progress)
        with deployment:
            deployment.api.set_connection(service.connection())
            deployment.api.unpause("stack_waits")
            deployment.api.trigger("stack_waits", {"execution_ids": ids})
            _defer_all(deployment, ids)
            progress("all sensors are deferred")
            time.sleep(SETTLING_SECONDS)
            with service.refusing(SHARE):
                _watch(deployment, service, minutes)
            for one in ids:
                service.finish(one)
            progress("the executions have ended")
            wait_until(lambda: not _deferred(deployment), seconds=ENDING_SECONDS, what="all waits to end", interval=5)
            return Counter(map(_verdict, deployment.lines(f"SELECT coalesce(next_kwargs::text, state) {_WAITING}")))


def _defer_all(deployment: Deployment, ids: list[str]) -> None:
    def is_first_deferred() -> bool:
        return bool(_deferred(deployment)) and deployment.query(f"SELECT count(*) {_WAITING}") == [[str(len(ids))]]

    wait_until(is_first_deferred, seconds=600, what="the first sensor to be deferred", interval=1)
    deployment["worker"].kill()
    connection = psycopg2.connect(deployment.settings.database)
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT ti.trigger_id, ti.trigger_timeout, ti.next_method, ti.next_kwargs::text, t.kwargs, t.classpath, "
            f"t.created_date, ti.map_index FROM trigger t JOIN (SELECT * {_WAITING}) ti ON ti.trigger_id = t.id LIMIT 1"
        )
        _, *of_task, kwargs, classpath, created, first = cursor.fetchone()
        assert kwargs.count(f'"{ids[first]}"') == 1, "the id of the execution cannot be replaced"
        cursor.execute(f"SELECT map_index {_WAITING} AND trigger_id IS NULL")
        for (number,) in cursor.fetchall():
            own = kwargs.replace(f'"{ids[first]}"', f'"{ids[number]}"')
            cursor.execute(
                "INSERT INTO trigger (classpath, kwargs, created_date) VALUES (%s, %s, %s) RETURNING id",
                (classpath, own, created),
            )
            cursor.execute(
                "UPDATE task_instance SET state = 'deferred', trigger_id = %s, trigger_timeout = %s, next_method = %s, "
                f"next_kwargs = %s, start_date = now(), try_number = 1 WHERE {_OURS} AND map_index = %s",
                (*cursor.fetchone(), *of_task, number),
            )
    connection.close()


def _watch(deployment: Deployment, service: SimulatedService, minutes: int) -> None:
    print(f"{HEADER}\n|{' --- |' * (HEADER.count('|') - 1)}", flush=True)
    triggerers = [deployment["triggerer-1"], deployment["triggerer-2"]]
    for minute in range(1, minutes + 1):
        requests, began, event = service.count_requests(), time.monotonic(), ""
        for place, triggerer in enumerate(triggerers):
            if minute == (place + 1) * minutes // 3:
                triggerer.kill()
                triggerer.start()
                event = f"{triggerer.name} killed and started"
        time.sleep(max(0.0, 60 - (time.monotonic() - began)))
        members = [one for triggerer in triggerers for one in triggerer.members()]
        memory = sum(triggerer.usage()[1] for triggerer in triggerers) / MIB
        files = sum(one.num_fds() for one in members)
        rate = 60 * (service.count_requests() - requests) / (time.monotonic() - began)
        print(f"| {minute} | {rate:.0f} | {_deferred(deployment):,} | {memory:.0f} | {files} | {event} |", flush=True)


def _deferred(deployment: Deployment) -> int:
    [[count]] = deployment.query(f"SELECT count(*) {_WAITING} AND state = 'deferred'")
    return int(count)


def _verdict(line: str) -> str:
    """How the trigger's event judges the execution; what Airflow says of the task if there is none."""
    for verdict in ("succeeded", "failed", "unobservable", "vanished", "timed_out"):
        if json.dumps(verdict) in line:
            return verdict
    return line[:80]


if __name__ == "__main__":
    main()
