"""Run the main job through Airflow, against the simulator or the server of SERVICE_URL and SERVICE_API_KEY.

Ends with a summary of tasks, states and the contents of the server; the exit status is 0 only if all are as expected.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from airflow_provider_service._cli.screen import progress_bar
from scripts.dag_runner import TaskRun, prepare_home, run_dag

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient

ROOT = Path(__file__).resolve().parent.parent
DAG_FILE = ROOT / "example_dags" / "example_service_main_job.py"
ROWS = 100
STEPS = ("preparing Airflow", "asking the service", "running the DAG")
TABLE = "airflow_example_stock"
WORKFLOW = "Airflow example: main job"


@contextlib.contextmanager
def server() -> Iterator[dict[str, Any]]:
    """The connection to the server that the demo uses; starts the simulator if none is given."""
    url, key = os.environ.get("SERVICE_URL"), os.environ.get("SERVICE_API_KEY")
    if url and key:
        extra = {"key_header": os.environ.get("SERVICE_KEY_HEADER")}
        yield {"conn_type": "n8n", "host": url, "password": key, "extra": extra}
        return
    if url or key:
        raise SystemExit("Set both SERVICE_URL and SERVICE_API_KEY, or neither to use the simulator.")
    from airflow_provider_service.simulator import ServiceSimulator

    with ServiceSimulator() as simulator:
        yield json.loads(simulator.connection_json())


def say(text: str = "") -> None:
    """Print without buffering, also into a pipe."""
    print(text, flush=True)


def source_control_is_there(client: ServiceClient) -> bool:
    """Whether the server's plan includes source control."""
    from airflow_provider_service.client.errors import ServiceForbiddenError

    try:
        client.source_control.get_status("pull")
    except ServiceForbiddenError:
        return False
    return True


def what_the_server_holds(client: ServiceClient) -> dict[str, Any]:
    """The facts that the summary shows and the demo checks."""
    from airflow_provider_service.client._lookup import get_data_table, get_workflow

    workflow = get_workflow(client, WORKFLOW)
    table = get_data_table(client, TABLE)
    execution = next(client.executions.list(workflow_id=workflow.id, limit=1), None)
    return {
        "workflow active": workflow.active,
        "rows in the data table": sum(1 for _ in client.data_table_rows.list(table.id)),
        "last execution": execution.status if execution else "none",
    }


def report(runs: list[TaskRun], facts: dict[str, Any], problems: list[str], seconds: float) -> None:
    """Print the summary."""
    say("\n  task                     state")
    for run in runs:
        say(f"  {run.task_id:<24} {run.state}")
    say("\n  the server now holds")
    for name, value in facts.items():
        say(f"  {name:<24} {value}")
    say()
    say("\n".join(f"  NOT AS EXPECTED: {problem}" for problem in problems) or f"  All as expected, in {seconds:.0f} s.")


def main() -> int:
    """Run the demo."""
    with progress_bar(STEPS, Console()) as done:
        return demo(done)


def demo(done: Callable[[], None]) -> int:
    """Run the steps, and report; ``done`` is called after each."""
    started = time.monotonic()
    say("1/3 Airflow: an SQLite database in .airflow")
    prepare_home(ROOT / ".airflow", ROOT / "example_dags")
    done()
    with server() as connection:
        say(f"2/3 The service: {connection['host']}")
        os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"] = json.dumps(connection)
        from airflow_provider_service.hooks.service import ServiceHook

        with ServiceHook() as hook:
            reachable, message = hook.test_connection()
            say(f"    {message}")
            if not reachable:
                return 1
            pull = source_control_is_there(hook.client)
            done()
            say(f"3/3 The DAG: {DAG_FILE.relative_to(ROOT)}")
            state, runs = run_dag(DAG_FILE, {"pull": pull})
            facts = what_the_server_holds(hook.client)
            done()
    expected = {"workflow active": True, "rows in the data table": ROWS, "last execution": "success"}
    problems = [f"{name} is {facts[name]!r}, not {value!r}" for name, value in expected.items() if facts[name] != value]
    skipped = {"pull_source_control"} if not pull else set()
    for run in runs:
        wanted = "skipped" if run.task_id in skipped else "success"
        if run.state != wanted:
            problems.append(f"task {run.task_id} is {run.state}, not {wanted}")
    if state != "success":
        problems.append(f"the DAG run is {state}")
    report(runs, facts, problems, time.monotonic() - started)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
