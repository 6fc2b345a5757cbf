"""Measure plans and deployments of many workflows, beside a plain loop that creates or updates each.

``python -m bench.instances`` prints a table for docs/benchmarks.md. The service is the simulator in a separate process,
or the server given by SERVICE_URL and SERVICE_API_KEY, which must hold no workflows.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple
from uuid import uuid4

import requests

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.plan import DeploymentPlan, DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceConflictError
from bench.measuring import counted, spread
from bench.rows import service
from tests.corpus.workflows import corpus, existing

HEADER = "| workflows | step | CPU, s | seconds | requests | loop: CPU, s | seconds | requests | times its seconds |"
#: Steps, in turn; the loop does with a plan that finds no difference what it always does.
PLAN, DEPLOY, AGAIN = "plan, nothing exists", "plan and deploy", "plan again, nothing differs"

Definitions = list[dict[str, Any]]


class Sample(NamedTuple):
    """What a step took of this process, and the requests that were answered."""

    cpu: float
    seconds: float
    requests: int


def definitions(count: int) -> Definitions:
    """Workflows of the corpus that a service accepts in a plain loop."""
    refused = {"settings at their defaults"}
    accepted = [one for one in corpus(count * 3 // 2) if one.fault is None and refused.isdisjoint(one.shapes)]
    run = uuid4().hex[:6]
    return [{**one.definition, "name": f"bench {run} {one.file}"} for one in accepted[:count]]


def loop(client: ServiceClient, source: Definitions) -> None:
    """List the workflows, then create or update each."""
    config = client.transport.config
    url, known, query = f"{config.base_url}/api/v1/workflows", dict[str, str](), dict[str, Any](limit=250)
    with requests.Session() as session:
        session.headers[config.key_header] = config.api_key.get_secret_value()
        while True:
            page = _read(session.get(url, params=query, timeout=120))
            known.update((workflow["name"], workflow["id"]) for workflow in page["data"])
            if not (cursor := page.get("nextCursor")):
                break
            query["cursor"] = cursor
        for definition in source:
            body = {key: definition.get(key) or {} for key in ("name", "nodes", "connections", "settings")}
            if workflow_id := known.get(definition["name"]):
                _read(session.put(f"{url}/{workflow_id}", json=body, timeout=120))
            else:
                _read(session.post(url, json=body, timeout=120))


def _read(answer: requests.Response) -> Any:
    answer.raise_for_status()
    return answer.json()


def plan(client: ServiceClient, source: Definitions) -> DeploymentPlan:
    """Plan a deployment that activates nothing."""
    return make_plan(read_source(source), DeploymentTarget(client), activate=False)


def deploy(client: ServiceClient, source: Definitions) -> None:
    """Plan and deploy."""
    apply_plan(plan(client, source), DeploymentTarget(client))


def taken(work: Callable[[], object]) -> Sample:
    """Measure some work."""
    with counted() as exchanges:
        cpu, begin = time.process_time(), time.perf_counter()
        work()
        return Sample(time.process_time() - cpu, time.perf_counter() - begin, exchanges.count)


def empty(client: ServiceClient) -> None:
    """Delete all workflows."""
    while workflows := list(client.workflows.list()):
        for workflow in workflows:
            try:
                client.workflows.deactivate(workflow.id)
                client.workflows.delete(workflow.id)
            except ServiceConflictError:
                time.sleep(1)  # it is still being unpublished


def measure(client: ServiceClient, counts: Sequence[int], repeats: int) -> None:
    """Measure all steps in turn, and print the table."""
    lines = []
    for count in counts:
        source = definitions(count)
        found: dict[tuple[str, bool], list[Sample]] = {}
        for _ in range(repeats):
            for is_loop in (True, False):
                steps = {DEPLOY: loop, AGAIN: loop} if is_loop else {PLAN: plan, DEPLOY: deploy, AGAIN: plan}
                for step, work in steps.items():
                    sample = taken(lambda work=work, source=source: work(client, source))  # type: ignore[misc]
                    found.setdefault((step, is_loop), []).append(sample)
                    print(f"{count}, {step}, {'the loop' if is_loop else 'this provider'}: {sample}", flush=True)
                if not is_loop and (changed := plan(client, source).changed):
                    raise RuntimeError(f"what was deployed differs from its definition: {changed[0]}")
                empty(client)
        lines += [_line(count, step, found[step, False], found.get((step, True), [])) for step in (PLAN, DEPLOY, AGAIN)]
    print("", HEADER, f"|{'---|' * (HEADER.count('|') - 1)}", *lines, sep="\n")


def _line(count: int, step: str, ours: Sequence[Sample], loops: Sequence[Sample]) -> str:
    times = [one.seconds / other.seconds for one, other in zip(ours, loops, strict=False)]
    cells = [cell for samples in (ours, loops) for cell in (_cells(samples) if samples else [""] * 3)]
    return f"| {count:,} | {step} | {' | '.join([*cells, spread(times, '.1f') if times else ''])} |"


def _cells(samples: Sequence[Sample]) -> list[str]:
    cpu, seconds, exchanges = zip(*samples, strict=True)
    return [spread(cpu, ".1f"), spread(seconds, ".1f"), f"{median(exchanges):,.0f}"]


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.instances", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="times each number of workflows (default: %(default)s)")
    parser.add_argument("--counts", type=int, nargs="+", help="numbers of workflows")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    url = os.environ.get("SERVICE_URL")
    with service(url) as config, ServiceClient(config) as client:
        if url and any(client.workflows.list()):
            parser.error("the service holds workflows, which would be deleted")
        made = [client.credentials.create(name, kind, data).id for kind, name, data in existing()]
        empty(client)
        try:
            measure(client, options.counts or ([300] if url else [100, 500, 2_000]), options.repeats)
        finally:
            for credential_id in made:
                client.credentials.delete(credential_id)


if __name__ == "__main__":
    main()
