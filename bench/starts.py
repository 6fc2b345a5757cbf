"""Measure how long it takes to start a workflow and to know its execution, by way, beside a bare call of its webhook.

``python -m bench.starts`` prints a table for docs/benchmarks.md. The service is the simulator in a separate process, or
the server given by SERVICE_URL, SERVICE_API_KEY and SERVICE_MCP_API_KEY.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from statistics import median, quantiles
from typing import Any, NamedTuple
from uuid import uuid4

import requests

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.simulator.samples import WITH_ID, chain, node, webhook
from bench.service import Service

AT_ONCE = 100
HEADER = "| way | seconds to know the execution, median | 95th percentile | requests per start | times a bare call |"
SCHEDULE = node("Clock", "scheduleTrigger", 1.2, {"rule": {"interval": [{"field": "months"}]}}, 0)
FORM = {**node("Form", "formTrigger", 2.2, {"formTitle": "Form"}, 0), "webhookId": str(uuid4())}
DONE = node("Done", "noOp", 1, {}, 1)


class Way(NamedTuple):
    """A line of the table.

    :param trigger: begins the workflow.
    :param arguments: of ``hook.run_workflow``; None for a bare call of the webhook.
    """

    title: str
    trigger: dict[str, Any]
    arguments: dict[str, Any] | None


def ways() -> list[Way]:
    """All of them, the bare call first."""
    naming = {"responseData": WITH_ID}
    return [
        Way("a bare call of the webhook", _webhook(), None),
        Way("webhook that names the execution", _webhook(options=naming), {"start": "webhook"}),
        Way("webhook that does not", _webhook(), {"start": "webhook"}),
        Way("MCP, form", FORM, {"start": "mcp", "payload": {"n": 1}}),
        Way("MCP, schedule", SCHEDULE, {"start": "mcp"}),
    ]


def _webhook(**parameters: Any) -> dict[str, Any]:
    return {**webhook(uuid4().hex, **parameters), "webhookId": str(uuid4())}


class Exchanges(logging.Handler):
    """Counts the requests of all clients of this process."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count one that was answered."""
        if record.msg == "%s %s answered %s":
            with threading.Lock():
                self.count += 1


@contextmanager
def counted() -> Iterator[Exchanges]:
    """Count the requests meanwhile."""
    log, exchanges = logging.getLogger("airflow_provider_service.client.http.transport"), Exchanges()
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(exchanges)
    try:
        yield exchanges
    finally:
        log.removeHandler(exchanges)


@contextmanager
def workflow(client: ServiceClient, trigger: dict[str, Any]) -> Iterator[str]:
    """A live workflow, deleted afterwards."""
    body = chain(f"bench {uuid4().hex}", [trigger, DONE])
    made = client.workflows.create(
        body["name"], nodes=body["nodes"], connections=body["connections"], settings={"availableInMCP": True}
    )
    client.workflows.activate(made.id)
    time.sleep(1)  # a webhook goes live a moment after the answer
    yield made.id
    client.workflows.deactivate(made.id)
    time.sleep(1)  # it is being unpublished for a moment
    client.workflows.delete(made.id)


def at_once(start: Callable[[], Any]) -> list[float]:
    """Seconds that each of many simultaneous starts takes."""
    ready = threading.Barrier(AT_ONCE)

    def timed(_: int) -> float:
        ready.wait()
        begin = time.perf_counter()
        start()
        return time.perf_counter() - begin

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(timed, range(AT_ONCE)))


def measure(client: ServiceClient, repeats: int) -> None:
    """Measure all ways in turn, and print the table."""
    seconds: dict[str, list[float]] = {}
    asked: dict[str, int] = {}
    for _ in range(repeats):
        for way in ways():
            with workflow(client, way.trigger) as workflow_id, counted() as exchanges:
                taken = at_once(_bare(client, way) if way.arguments is None else _ours(way, workflow_id))
            seconds.setdefault(way.title, []).extend(taken)
            asked[way.title] = asked.get(way.title, 0) + (AT_ONCE if way.arguments is None else exchanges.count)
            print(f"{way.title}: {median(taken):.2f} s", flush=True)
    print("", HEADER, "|---|---|---|---|---|", sep="\n")
    bare = median(next(iter(seconds.values())))
    for title, taken in seconds.items():
        slow, each = quantiles(taken, n=20)[-1], asked[title] / len(taken)
        print(f"| {title} | {median(taken):.2f} | {slow:.2f} | {each:.1f} | {median(taken) / bare:.1f} |")


def _bare(client: ServiceClient, way: Way) -> Callable[[], None]:
    address = f"{client.base_url}/webhook/{way.trigger['parameters']['path']}"

    def start() -> None:
        requests.post(address, json={}, timeout=60).raise_for_status()

    return start


def _ours(way: Way, workflow_id: str) -> Callable[[], None]:
    def start() -> None:
        with ServiceHook() as hook:
            hook.run_workflow(workflow_id=workflow_id, wait_for_completion=False, **(way.arguments or {}))

    return start


@contextmanager
def service() -> Iterator[ServiceClient]:
    """A client of the server in the environment, or of a simulator in a separate process; the default connection."""
    with ExitStack() as stack:
        url = os.environ.get("SERVICE_URL")
        if url is None:
            connection = json.loads(stack.enter_context(Service(0.0)).connection)
        else:
            extra = {"key_header": "X-N8N-API-KEY", "mcp_api_key": os.environ["SERVICE_MCP_API_KEY"]}
            password = os.environ["SERVICE_API_KEY"]
            connection = {"conn_type": "service", "host": url, "password": password, "extra": extra}
        os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"] = json.dumps(connection)
        values = {"base_url": connection["host"], "api_key": connection["password"], **connection["extra"]}
        yield stack.enter_context(ServiceClient(ServiceConfig.parse("the environment", values)))


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.starts", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="times 100 starts of each way (default: %(default)s)")
    options = parser.parse_args()
    with service() as client:
        measure(client, options.repeats)


if __name__ == "__main__":
    main()
