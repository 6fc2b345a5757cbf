"""What the pollers of a test do: their threads, and their requests."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from airflow_provider_service._core.waits.poller import MAX_READS_AT_ONCE
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ACTIVE_STATUSES
from airflow_provider_service.simulator import ServiceSimulator

from .driving import until

# Three lists beside the reads by id.
MAX_REQUESTS_AT_ONCE = MAX_READS_AT_ONCE + len(ACTIVE_STATUSES)

# Long enough to tell one round from the next on a busy machine.
ROUND_SECONDS = 2.0

LIST = "/executions$"
CONNECTION = "AIRFLOW_CONN_SERVICE_DEFAULT"


def poller_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("service-poller")]


def pollers() -> int:
    """How many pollers live in the running event loop."""
    return sum(getattr(task.get_coro(), "__qualname__", "") == "Poller._run" for task in asyncio.all_tasks())


def started(simulator: ServiceSimulator, workflow_id: str, count: int, status: str = "running") -> list[str]:
    return [simulator.start_execution(workflow_id, status=status) for _ in range(count)]


def requests_made(simulator: ServiceSimulator) -> Counter[str]:
    """Lists by status, and reads by id."""
    found: Counter[str] = Counter()
    for one in simulator.requests:
        status = re.search("status=([a-z]+)", one.query)
        found[f"list {status[1] if status else ''}" if one.path.endswith("/executions") else "read"] += 1
    return found


async def round_of(simulator: ServiceSimulator, count: int) -> Counter[str]:
    """The requests of the next round, which are so many, for waits with an interval of ``ROUND_SECONDS``."""
    simulator.clear_requests()
    await until(lambda: requests_made(simulator).total() >= count)
    await clock().async_sleep(0.1)  # one too many would follow at once
    return requests_made(simulator)


async def end(waits: Sequence[asyncio.Future[Any]]) -> None:
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


ACTIVE_LISTS = {"list new": 1, "list running": 1, "list waiting": 1}


def small_pages(simulator: ServiceSimulator, page_size: int) -> str:
    return json.dumps({**json.loads(simulator.connection_json()), "extra": {"page_size": page_size}})
