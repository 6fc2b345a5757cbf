"""Measure how long it takes to start a workflow and to know its execution, by way, beside a bare call of its webhook.

``python -m bench.starts`` prints a table for docs/benchmarks.md. The service is the simulator in a separate process, or
the server given by SERVICE_URL, SERVICE_API_KEY and SERVICE_MCP_API_KEY.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any, NamedTuple
from uuid import uuid4

import requests

from airflow_provider_service._core.runs.bridge import BridgeSecret, Installer, credential_of
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.simulator._samples import WITH_ID, chain, node, trigger, webhook
from bench.measuring import counted
from bench.service import Service

AT_ONCE = 100
HEADER = "| start method | median, s | 5th to 95th percentile, s | requests per start | times a bare call |"
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
        Way("MCP, form", trigger("form", uuid4().hex), {"start": "mcp", "payload": {"n": 1}}),
        Way("MCP, schedule", trigger("schedule", uuid4().hex), {"start": "mcp"}),
        Way("bridge, sub-workflow", trigger("sub-workflow", uuid4().hex), {"start": "bridge", "payload": {"n": 1}}),
    ]


def _webhook(**parameters: Any) -> dict[str, Any]:
    return {**webhook(uuid4().hex, **parameters), "webhookId": str(uuid4())}


@contextmanager
def workflow(client: ServiceClient, begin: dict[str, Any]) -> Iterator[str]:
    """A live workflow, deleted afterwards."""
    body = chain(f"bench {uuid4().hex}", [begin, DONE])
    made = client.workflows.create(
        body["name"], nodes=body["nodes"], connections=body["connections"], settings={"availableInMCP": True}
    )
    client.workflows.activate(made.id)
    time.sleep(1)  # a webhook goes live a moment after the answer
    yield made.id
    client.workflows.deactivate(made.id)
    time.sleep(1)  # it is being unpublished for a moment
    client.workflows.delete(made.id)


@contextmanager
def bridge(client: ServiceClient) -> Iterator[None]:
    """The bridge in place before the first start; removed afterwards if it was not there."""
    installed = Installer(client, BridgeSecret(client.transport.config)).install()
    time.sleep(1)
    yield
    if installed.outcome == "created":
        held = credential_of(installed.workflow)
        client.workflows.deactivate(installed.workflow.id)
        time.sleep(1)
        client.workflows.delete(installed.workflow.id)
        if held is not None:
            client.credentials.delete(held.id)


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


@dataclass
class Sample:
    """The measured values of one way: a list per round."""

    seconds: list[list[float]] = field(default_factory=list)
    requests: int = 0

    def medians(self) -> list[float]:
        """One per round."""
        return [median(taken) for taken in self.seconds]


def measure(client: ServiceClient, repeats: int) -> None:
    """Measure all ways in turn, and print the table."""
    samples: dict[str, Sample] = {}
    for _ in range(repeats):
        for way in ways():
            sample = samples.setdefault(way.title, Sample())
            with workflow(client, way.trigger) as workflow_id:
                start = _bare(client, way) if way.arguments is None else _ours(way, workflow_id)
                start()  # modules are loaded, and the workflow is live for certain
                with counted() as exchanges:
                    sample.seconds.append(at_once(start))
            sample.requests += AT_ONCE if way.arguments is None else exchanges.count
            print(f"{way.title}: {sample.medians()[-1]:.2f} s", flush=True)
    bare = next(iter(samples.values())).medians()
    lines = [row(title, sample, bare) for title, sample in samples.items()]
    print("", HEADER, "|---|---|---|---|---|", *lines, sep="\n")


def row(title: str, sample: Sample, bare: Sequence[float]) -> str:
    """A line of the table.

    :param bare: medians of the bare calls of each round.
    """
    taken = [seconds for each in sample.seconds for seconds in each]
    twentieths = quantiles(taken, n=20)
    ratios = [ours / theirs for ours, theirs in zip(sample.medians(), bare, strict=True)]
    spread = f"{median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"
    return (
        f"| {title} | {median(taken):.2f} | {twentieths[0]:.2f}-{twentieths[-1]:.2f} "
        f"| {sample.requests / len(taken):.1f} | {spread} |"
    )


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
    with service() as client, bridge(client):
        measure(client, options.repeats)


if __name__ == "__main__":
    main()
