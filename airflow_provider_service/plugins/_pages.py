"""The pages in Airflow: who may see what, then the pages of tasks, the lists of executions, and those of connections.

Nothing is computed or read in the event loop. Viewers of the same page share each step, through snapshots.
"""

from __future__ import annotations

import asyncio
import gzip
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails, DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_2_PLUS
from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from airflow_provider_service._airflow import settings
from airflow_provider_service._airflow.connection import DEFAULT_CONNECTIONS, KEY_HEADERS
from airflow_provider_service._core.pages import checkup, reading, rendering
from airflow_provider_service._core.pages.checkup import SHOWN_RUNS, ConnectionView, Finding
from airflow_provider_service._core.pages.executions import ExecutionsView, Search
from airflow_provider_service._core.pages.reading import (
    COMPUTING,
    ExecutionReading,
    OpenReading,
    Snapshots,
    TooManyReadsError,
)
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceConfigError
from airflow_provider_service.plugins import _airflow_tables
from airflow_provider_service.plugins._airflow_tables import Executions, Found

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

    from airflow_provider_service._core.pages.executions import TaskExecution
    from airflow_provider_service._core.pages.rendering import Part
    from airflow_provider_service._core.pages.task_view import TaskView
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.hooks.service import ServiceHook
    from airflow_provider_service.links.service import ExecutionAddress

#: Seconds for which the page of a task that has started nothing does not test its connection again.
KEEP_PROBLEM_SECONDS = 30.0
#: Number of lists of executions that are kept, and for how many seconds.
LISTS, KEEP_LIST_SECONDS = 20, 5.0
#: Seconds for which a list keeps what the connections are, and that something is not known.
KEEP_SERVERS_SECONDS, KEEP_UNKNOWN_SECONDS = 60.0, 30.0
#: Seconds for which a list and a tab wait for the service, before they are shown without its answer.
WAIT_SECONDS, TAB_SECONDS = 2.0, 4.0
#: Seconds for which an examination of a connection is kept, and for which a page waits for one.
KEEP_CHECKUP_SECONDS, CHECKUP_SECONDS = 30.0, 60.0
#: Number of connections that the list examines; it shows only the names of the others.
MAX_EXAMINED = 20

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": rendering.POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_COMPLETE = "These are all that Airflow's database holds."
_LIMITED = (
    f"The page looks at the latest {_airflow_tables.MAX_DAG_RUNS:,} DAG runs, and at the latest "
    f"{_airflow_tables.MAX_EXECUTIONS:,} executions in them; there are earlier ones."
)

_IN_ENVIRONMENT = "AIRFLOW_CONN_"
_IS_OURS = re.compile(rf"""{_IN_ENVIRONMENT}\w+=\s*(n8n:|service:|\{{.*"conn_type"\s*:\s*"(n8n|service)")""", re.DOTALL)
_NEVER = datetime.max.replace(tzinfo=UTC)

T = TypeVar("T")


def _may_read(request: Request, user: BaseUser) -> Callable[[str], bool]:
    @cache
    def may_read(dag_id: str) -> bool:
        try:
            requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE, dag_id)(request, user)
        except HTTPException:
            return False
        return True

    return may_read


def _readable_connections(user: BaseUser, ids: list[str]) -> Collection[str]:
    """Select the connections that a user may read, which excludes those of other teams, for example."""
    manager = get_auth_manager()
    if AIRFLOW_V_3_2_PLUS:
        allowed: set[str] = manager.get_authorized_connections(user=user)
        return allowed
    one_by_one = partial(manager.is_authorized_connection, method="GET", user=user)  # there are no teams
    return [id_ for id_ in ids if one_by_one(details=ConnectionDetails(conn_id=id_))]


def page(request: Request, part: Part, title: str, status: int = 200) -> HTMLResponse:
    """Answer with a page, or only with the part of it that changes, if that is requested."""
    html = part.html if is_part(request) else rendering.page(part, title, request.scope["root_path"])
    return HTMLResponse(html, status, headers=HEADERS)


class Packed(NamedTuple):
    body: bytes
    version: str
    status: int = 200


def is_part(request: Request) -> bool:
    """Whether only the part of the page that changes is requested."""
    return request.query_params.get("part") == "view"


async def answer(request: Request, packed: Packed) -> Response:
    """Answer with what all viewers share; without a body if the browser has it."""
    tag = f'"{packed.version}"'
    headers = {**HEADERS, "ETag": tag, "Vary": "Accept-Encoding"}
    if is_part(request) and request.headers.get("if-none-match") in {tag, f"W/{tag}"}:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return HTMLResponse(await run_in_threadpool(gzip.decompress, packed.body), packed.status, headers)
    return HTMLResponse(packed.body, packed.status, {**headers, "Content-Encoding": "gzip"})


async def _within(seconds: float | None, future: Future[T]) -> T:
    """Wait for the result of one of the pages' own threads: those of Airflow's pool serve its other pages."""
    computed = asyncio.wrap_future(future)
    return await (computed if seconds is None else clock().wait_for(computed, seconds))


def _hook_of(service_conn_id: str) -> ServiceHook:
    from airflow_provider_service.hooks.service import ServiceHook

    return ServiceHook(service_conn_id)


def _config_of(service_conn_id: str) -> ServiceConfig:
    return _hook_of(service_conn_id).config


#: The ids of DAG, run and task and the map index of a task instance, and the attempt to show; None for the latest.
TaskKey = tuple[str, str, str, int, int | None]


class TaskPages:
    """Each step of a page is kept for the next viewer; ``processes`` together read no more often than one would."""

    def __init__(self, processes: int) -> None:
        self._tasks: Snapshots[Found | None] = Snapshots(lambda _: 0.0)
        self._executions = Snapshots(reading.keep_seconds, processes=processes)
        self._problems: Snapshots[str | None] = Snapshots(lambda _: KEEP_PROBLEM_SECONDS, processes=processes)
        self._pages: Snapshots[Packed] = Snapshots(lambda _: math.inf)

    async def get(self, key: TaskKey, root: str, *, whole: bool) -> Packed | None:
        """Get a page, or its part that changes; None if there is no such task instance, or no such attempt of it."""
        found = await _within(None, self._tasks.look(key, lambda _: _airflow_tables.find(*key)))
        if found is None:
            return None
        seen = None if found.address is None else await self._seen(found.task.service_conn_id, found.address)
        problem = await self._problem(found.task) if seen is None else None
        make = partial(_packed, found, seen, root, whole=whole, problem=problem)
        # The number stands for the reading itself, which would otherwise be kept for as long as the page.
        version = (found, None if seen is None else seen.number, root, whole, problem)
        return await _within(None, self._pages.look(version, lambda _: make()))

    async def _seen(self, service_conn_id: str | None, address: ExecutionAddress) -> ExecutionReading:
        if service_conn_id is None:
            return ExecutionReading(error="Airflow no longer knows which connection the task used.")
        read = partial(_read, service_conn_id, address, settings.shows_data())
        try:
            execution = self._executions.look((service_conn_id, *address), read, group=service_conn_id)
            return await _within(TAB_SECONDS, execution)
        except TooManyReadsError as error:
            return ExecutionReading(error=f"{error}.")
        except TimeoutError:
            return ExecutionReading(error="The service has not answered yet.")

    async def _problem(self, task: TaskView) -> str | None:
        """Find out whether its connection kept a failed task from starting an execution, as far as that shows now."""
        conn_id = task.service_conn_id
        if task.state != "failed" or conn_id is None:
            return None
        check = partial(reading.why_unusable, partial(_config_of, conn_id))
        try:
            return await _within(reading.READ_SECONDS, self._problems.look(conn_id, lambda _: check(), group=conn_id))
        except (TooManyReadsError, TimeoutError):
            return None


def _read(
    service_conn_id: str, address: ExecutionAddress, show_data: bool, last: ExecutionReading | None
) -> ExecutionReading:
    hook = _hook_of(service_conn_id)
    seen = reading.see(lambda: hook.config, address.execution_id, last, base_url=address.base_url, show_data=show_data)
    return rendering.drawn(replace(seen, conn_id=hook.resolved_conn_id))


def _packed(found: Found, seen: ExecutionReading | None, root: str, *, whole: bool, problem: str | None) -> Packed:
    task, address, evidence = found
    why_hidden = None
    if seen is not None and address is not None and evidence is not None:
        why_hidden = evidence.why_hidden(seen, address.workflow_id)
        task = task.started_by(evidence.started_by(seen))
    part = rendering.task_part(task, seen, why_hidden, root=root, problem=problem)
    html = rendering.page(part, f"{task.task_id}: execution", root, takes="try_number") if whole else part.html
    return Packed(rendering.packed(html), part.version)


class Servers(NamedTuple):
    """The base URL of each known connection, by its id."""

    known: tuple[tuple[str, str], ...] = ()
    lacks: tuple[str, ...] = ()


_UNKNOWN = Servers()


class ListPages:
    """Lists of executions. Viewers who may read the same DAGs share what is read, and the pages."""

    def __init__(self, processes: int) -> None:
        self._lists = Snapshots[Executions](lambda _: KEEP_LIST_SECONDS, processes=processes, capacity=LISTS)
        self._servers = Snapshots[Servers](lambda _: KEEP_SERVERS_SECONDS, processes=processes, capacity=LISTS)
        self._open = Snapshots[OpenReading](lambda _: KEEP_LIST_SECONDS, processes=processes)
        self._nodes = Snapshots[str](lambda node: math.inf if node else KEEP_UNKNOWN_SECONDS, processes=processes)
        self._views = Snapshots[ExecutionsView](lambda _: math.inf, capacity=LISTS)
        self._pages = Snapshots[Packed](lambda _: math.inf)

    async def read(self, dag_id: str | None = None, run_id: str | None = None) -> Executions:
        read = partial(_airflow_tables.executions, dag_id, run_id)
        return await _within(None, self._lists.look((dag_id, run_id), lambda _: read()))

    async def get(self, request: Request, user: BaseUser, dag_id: str | None, run_id: str | None) -> Packed:
        """Get a page, or its part that changes. What a service has not answered in time comes with a later part."""
        executions, place = await self.read(dag_id, run_id), (dag_id, run_id)
        search, dags, hosts = await run_in_threadpool(_asked, request, user, executions)
        until, servers = clock().monotonic() + WAIT_SECONDS, Servers()
        if executions.known:
            find = partial(_servers, executions)
            servers = await self._servers.in_time(until, "servers", (place, *executions.open_in), find) or _UNKNOWN
        ids = [id_ for id_, base_url in servers.known if base_url in hosts][:MAX_EXAMINED]
        looks = {id_: partial(reading.see_open, id_, partial(_config_of, id_)) for id_ in ids}
        readings = await asyncio.gather(*(self._open.in_time(until, id_, id_, look) for id_, look in looks.items()))
        of_services = [one for one in readings if one is not None]
        now = clock().utcnow().replace(second=0, microsecond=0) if hosts else _NEVER
        asked = (*search.form.items(), search.page, dags, place, now)
        seen = (executions.number, servers, *(one.number for one in of_services), asked)
        make = partial(_view, executions, servers, of_services, search, dags, place, now)
        view = await _within(None, self._views.look(seen, lambda _: make()))
        places = (self._nodes.in_time(until, one.address.base_url, one, partial(_node, one)) for one in view.waiting)
        nodes = tuple(await asyncio.gather(*places))
        is_whole, root = not is_part(request), request.scope["root_path"]
        is_all = servers is not _UNKNOWN and None not in readings
        draw = partial(_packed_list, view, nodes, root, is_whole=is_whole, is_all=is_all)
        return await _within(None, self._pages.look((seen, nodes, root, is_whole, is_all), lambda _: draw()))


def _asked(request: Request, user: BaseUser, executions: Executions) -> tuple[Search, frozenset[str], set[str]]:
    """What the user searches, the DAGs that the user may read, and the servers of what may be open in these."""
    dags = frozenset(filter(_may_read(request, user), executions.dags))
    return Search.of(request.query_params), dags, {server for server, its in executions.open_in.items() if its & dags}


def _servers(executions: Executions) -> Servers:
    """Find the connections to the service: those in the database and the environment, and else those of the tasks."""
    lacks: list[str] = []
    known: dict[str, str] = {}

    def add(ids: Iterable[str]) -> None:
        for id_ in ids:
            with suppress(Exception):  # a secrets backend can raise anything
                known[id_] = _config_of(id_).base_url

    variables = (name for name, text in os.environ.items() if _IS_OURS.match(f"{name}={text}"))
    add([DEFAULT_CONNECTIONS[0], *_airflow_tables.connections(list, lacks)])
    add(name.removeprefix(_IN_ENVIRONMENT).lower() for name in variables)
    strange = [one for one in executions.known if one.address.base_url not in known.values()]
    add(_airflow_tables.connections_of(strange, lacks) - known.keys())
    return Servers(tuple(known.items()), tuple(lacks))


def _node(one: TaskExecution) -> str:
    """Find the node at which an execution waits, if the task provably started it or waits for it."""
    found = _airflow_tables.find(one.dag_id, one.run_id, one.task_id, one.map_index)
    if found is None or found.evidence is None or found.address != one.address or not found.task.service_conn_id:
        return ""
    config_of, (base_url, _, execution_id) = partial(_config_of, found.task.service_conn_id), one.address
    seen = reading.see(config_of, execution_id, None, base_url=base_url, show_data=False)
    if seen.view is None or found.evidence.why_hidden(seen, one.address.workflow_id) is not None:
        return ""
    return next((node.name for node in seen.view.nodes if node.state == "waiting"), "")


def _view(
    executions: Executions,
    servers: Servers,
    readings: Sequence[OpenReading],
    search: Search,
    dags: frozenset[str],
    place: tuple[str | None, str | None],
    now: datetime,
) -> ExecutionsView:
    listed = {(one.base_url, id_): open_ for one in readings for id_, open_ in one.listed.items()}
    readable = [
        one.listed(listed.get((one.address.base_url, one.address.execution_id))) if one.may_be_open else one
        for one in executions.known
        if one.dag_id in dags and not search.problem
    ]
    lacks = [*executions.lacks, *servers.lacks]
    dag_id, run_id = place
    names = _airflow_tables.workflow_names(readable, lacks)
    known = {one.base_url for one in readings if one.error is None}
    errors = {one.base_url or one.error: one.error for one in readings if one.error and one.base_url not in known}
    view = ExecutionsView(
        readable,
        search,
        now,
        hosts=frozenset(base_url for _, base_url in servers.known),
        names=names,
        place=f"run {run_id}" if run_id is not None else f"DAG {dag_id}" if dag_id is not None else "",
        limit=_COMPLETE if executions.is_complete else "" if executions.lacks and not executions.known else _LIMITED,
        lacks=[*lacks, *errors.values()],
    )
    with COMPUTING:
        view.waiting  # noqa: B018 - computed here, and not in the event loop
    return view


def _packed_list(
    view: ExecutionsView, nodes: Sequence[str | None], root: str, *, is_whole: bool, is_all: bool
) -> Packed:
    node_of = dict(zip(view.waiting, nodes, strict=True))
    part = rendering.executions_part(view, node_of, is_all, airflow=settings.base_path())
    html = rendering.page(part, "n8n executions", root, takes="zone") if is_whole else part.html
    return Packed(rendering.packed(html), part.version, 400 if view.search.problem else 200)


async def executions_page(
    request: Request, user: GetUserDep, dag_id: str | None = None, run_id: str | None = None
) -> Response:
    pages: ListPages = request.app.state.executions
    return await answer(request, await pages.get(request, user, dag_id, run_id))


class Checkup(NamedTuple):
    """``conn_id`` is that of the connection that was used, since the default id stands for several; None: of none."""

    findings: list[Finding]
    conn_id: str | None = None
    base_url: str | None = None
    is_n8n: bool = False


def connection_snapshots(processes: int) -> Snapshots[Checkup]:
    return Snapshots(lambda result: KEEP_CHECKUP_SECONDS if result.conn_id else 0.0, processes=processes)


def _examine(request: Request, connection_id: str) -> Future[Checkup]:
    def check(_last: Checkup | None) -> Checkup:
        try:
            hook = _hook_of(connection_id)
            is_n8n = hook.config.key_header == KEY_HEADERS["n8n"]
            return Checkup(list(checkup.examine(hook.config)), hook.resolved_conn_id, hook.config.base_url, is_n8n)
        except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything, with a secret in its text
            reason = error.reason if isinstance(error, ServiceConfigError) else reading.error_text(error)
            return Checkup([Finding("connection", "FAIL", f"'{connection_id}' cannot be used: {reason}")])

    checkups: Snapshots[Checkup] = request.app.state.checkups
    return checkups.look(connection_id, check, group=connection_id)


async def connections_page(request: Request, user: GetUserDep) -> Response:
    """List the connections that the user may read, and examine some; the page renews itself until that is done."""
    lacks: list[str] = []
    ids = await run_in_threadpool(_airflow_tables.connections, partial(_readable_connections, user), lacks)
    verdicts = {id_: _verdict_so_far(request, id_) for id_ in ids[:MAX_EXAMINED]}
    part = await run_in_threadpool(rendering.connections_part, ids, verdicts, lacks)
    return await run_in_threadpool(page, request, part, "n8n connections")


def _verdict_so_far(request: Request, connection_id: str) -> Finding | None:
    try:
        examination = _examine(request, connection_id)
    except TooManyReadsError:
        return None
    return checkup.verdict(examination.result().findings) if examination.done() else None


async def connection_page(request: Request, connection_id: str, user: GetUserDep) -> Response:
    try:
        result = await _within(CHECKUP_SECONDS, _examine(request, connection_id))
    except TooManyReadsError as error:
        result = Checkup([Finding("service", "FAIL", f"{error}; reload the page")])
    except TimeoutError:
        result = Checkup([Finding("service", "FAIL", "the service has not answered yet; reload the page")])
    if result.conn_id not in (None, connection_id):
        return RedirectResponse(quote(result.conn_id, safe=""))  # whose own page asks who may read it
    pages: ListPages = request.app.state.executions
    executions = Executions([], is_complete=True) if result.base_url is None else await pages.read()
    return await run_in_threadpool(_connection_page, request, user, connection_id, result, executions)


def _connection_page(
    request: Request, user: BaseUser, connection_id: str, result: Checkup, executions: Executions
) -> Response:
    runs = () if result.base_url is None else _airflow_tables.latest_runs(executions.known, result.base_url)
    may_read, lacks = _may_read(request, user), list(executions.lacks)
    view = ConnectionView(
        connection_id,
        result.findings,
        result.base_url,
        waits=_airflow_tables.waits(lacks),
        runs=list(islice((run for run in runs if may_read(run.dag_id)), SHOWN_RUNS)),
        made_at=clock().utcnow(),
        lacks=lacks,
        is_n8n=result.is_n8n,
    )
    part = rendering.connection_part(view, airflow=settings.base_path())
    return page(request, part, view.title)
