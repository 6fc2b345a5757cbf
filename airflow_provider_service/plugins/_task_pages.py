"""Pages of task instances. Nothing is computed in the event loop, and viewers of the same page share each step."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_provider_service._airflow import settings
from airflow_provider_service._core.pages import reading, rendering
from airflow_provider_service._core.pages.reading import ExecutionReading
from airflow_provider_service._core.pages.snapshots import Snapshots, TooManyReadsError
from airflow_provider_service.client._clock import clock
from airflow_provider_service.plugins import _airflow_tables
from airflow_provider_service.plugins._airflow_tables import Found

if TYPE_CHECKING:
    from airflow_provider_service._core.pages.task_view import TaskView
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.links._execution_address import ExecutionAddress

#: Seconds for which the page of a task that has started nothing does not test its connection again.
KEEP_PROBLEM_SECONDS = 30.0

T = TypeVar("T")


class TaskKey(NamedTuple):
    """A task instance, and the number of the attempt to show; None for the latest."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    attempt: int | None = None


class Packed(NamedTuple):
    """A page as it is sent: compressed HTML.

    :param version: changes with the content of the page.
    """

    body: bytes
    version: str


class TaskPages:
    """The pages of task instances, each step of which is kept for the next viewer.

    :param processes: number of processes of the API server, which together read no more often than one would.
    """

    def __init__(self, processes: int) -> None:
        self._tasks: Snapshots[Found | None] = Snapshots(lambda _: 0.0)
        self._executions = Snapshots(reading.keep_seconds, processes=processes)
        self._problems: Snapshots[str | None] = Snapshots(lambda _: KEEP_PROBLEM_SECONDS, processes=processes)
        self._pages: Snapshots[Packed] = Snapshots(lambda _: math.inf)

    async def get(self, key: TaskKey, root: str, *, whole: bool) -> Packed | None:
        """Get a page; None if there is no such task instance, or no such attempt of it.

        :param root: path below which the page's files are.
        :param whole: whether to get the whole page, instead of only the part that changes.
        """
        found = await within(None, self._tasks.look(key, lambda _: _airflow_tables.find(*key)))
        if found is None:
            return None
        seen = None if found.address is None else await self._seen(found.task.service_conn_id, found.address)
        problem = await self._problem(found.task) if seen is None else None
        make = partial(_packed, found, seen, root, whole=whole, problem=problem)
        # The number stands for the reading itself, which would otherwise be kept for as long as the page.
        version = (found, None if seen is None else seen.number, root, whole, problem)
        return await within(None, self._pages.look(version, lambda _: make()))

    async def _problem(self, task: TaskView) -> str | None:
        """Find out whether its connection kept a failed task from starting an execution, as far as that shows now."""
        if task.state != "failed" or task.service_conn_id is None:
            return None
        check = partial(reading.why_unusable, partial(config_of, task.service_conn_id))
        try:
            found = self._problems.look(task.service_conn_id, lambda _: check(), group=task.service_conn_id)
            return await within(reading.READ_SECONDS, found)
        except (TooManyReadsError, TimeoutError):
            return None

    async def _seen(self, service_conn_id: str | None, address: ExecutionAddress) -> ExecutionReading:
        if service_conn_id is None:
            return ExecutionReading(error="Airflow no longer knows which connection the task used.")
        read = partial(
            _read,
            service_conn_id=service_conn_id,
            address=address,
            show_data=settings.shows_data(),
        )
        try:
            reading_now = self._executions.look((service_conn_id, *address), read, group=service_conn_id)
            return await within(reading.READ_SECONDS, reading_now)
        except TooManyReadsError as error:
            return ExecutionReading(error=f"{error}.")
        except TimeoutError:
            return ExecutionReading(error="The service has not answered yet.")


async def within(seconds: float | None, future: Future[T]) -> T:
    """Wait for the result of one of the pages' own threads: those of Airflow's pool serve its other pages.

    :raises asyncio.TimeoutError: the result takes longer.
    """
    computed = asyncio.wrap_future(future)
    return await (computed if seconds is None else clock().wait_for(computed, seconds))


def config_of(service_conn_id: str) -> ServiceConfig:
    """Read the settings of a connection."""
    from airflow_provider_service.hooks.service import ServiceHook

    return ServiceHook(service_conn_id).config


def _read(
    last: ExecutionReading | None, *, service_conn_id: str, address: ExecutionAddress, show_data: bool
) -> ExecutionReading:
    from airflow_provider_service.hooks.service import ServiceHook

    hook = ServiceHook(service_conn_id)
    seen = reading.see(
        lambda: hook.config,
        address.execution_id,
        last,
        base_url=address.base_url,
        show_data=show_data,
    )
    return rendering.drawn(replace(seen, conn_id=hook.resolved_conn_id))


def _packed(
    found: Found, seen: ExecutionReading | None, root: str, *, whole: bool, problem: str | None = None
) -> Packed:
    task, address, evidence = found
    why_hidden = None
    if seen is not None and address is not None and evidence is not None:
        why_hidden = evidence.why_hidden(seen, address.workflow_id)
        task = task.started_by(evidence.started_by(seen))
    part = rendering.task_part(task, seen, why_hidden, root=root, problem=problem)
    html = rendering.page(part, f"{task.task_id}: execution", root, takes="try_number") if whole else part.html
    return Packed(rendering.packed(html), part.version)
