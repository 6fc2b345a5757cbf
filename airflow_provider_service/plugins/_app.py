"""The application behind the pages: who may see them, and what they get. Airflow's API server runs it."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails, DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_connection, requires_access_dag
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_2_PLUS
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from airflow_provider_service._airflow import settings
from airflow_provider_service._core.pages import checkup, connection_view, reading, rendering
from airflow_provider_service._core.pages.snapshots import Snapshots, TooManyReadsError
from airflow_provider_service._core.reports.html import as_html
from airflow_provider_service._core.reports.report import Link, Report, Table
from airflow_provider_service.client._clock import clock
from airflow_provider_service.plugins import _database as airflow_database
from airflow_provider_service.plugins._task_pages import TaskKey, TaskPages, config_of, within

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

    from airflow_provider_service._core.pages.checkup import Finding
    from airflow_provider_service._core.pages.connection_view import LatestRun

#: Time for which a connection is not examined again.
KEEP_CHECKUP_SECONDS = 30.0
#: Time that a page waits for an examination.
CHECKUP_SECONDS = 60.0
_PART_THAT_CHANGES = "view"
_UNMAPPED, _LARGEST_INDEX = "{MAP_INDEX}", 2**31 - 1
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": rendering.POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_KEPT = {**_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
_WORDS = {
    401: "You are not logged in to Airflow, or no longer. Log in, and reload the page.",
    403: "Your user may not read this in Airflow.",
    404: "Airflow has nothing of this name.",
}


class Checkup(NamedTuple):
    """What was found of a connection, and which server it leads to, if that is known."""

    findings: list[Finding]
    base_url: str | None = None


def make_app() -> FastAPI:
    """The application, with snapshots of its own."""
    app = FastAPI(title="Pages about the service", docs_url=None, redoc_url=None, openapi_url=None)
    workers = settings.api_workers()
    app.state.tasks = TaskPages(workers)
    app.add_api_route("/assets/{version}/{name}", _asset, methods=["GET"])
    app.add_api_route(
        "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/{map_index}",
        _task_page,
        methods=["GET"],
        dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE))],
    )
    app.state.checkups = Snapshots(lambda _: KEEP_CHECKUP_SECONDS, processes=workers)
    app.add_api_route(
        "/connections",
        _connections_page,
        methods=["GET"],
        dependencies=[Depends(requires_access_connection("GET"))],
    )
    app.add_api_route(
        "/connections/{connection_id}",
        _connection_page,
        methods=["GET"],
        dependencies=[Depends(requires_access_connection("GET"))],
    )
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(TooManyReadsError, _busy)
    return app


async def _asset(name: str) -> Response:
    if name not in rendering.ASSETS:
        raise HTTPException(404)
    return Response(rendering.asset(name), media_type=rendering.ASSETS[name], headers=_KEPT)


async def _task_page(
    request: Request,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: str,
    part: str | None = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    index = -1 if map_index == _UNMAPPED else _number(map_index)
    pages: TaskPages = request.app.state.tasks
    page = await pages.get(
        TaskKey(dag_id, run_id, task_id, index), request.scope["root_path"], whole=part != _PART_THAT_CHANGES
    )
    if page is None:
        raise HTTPException(404)
    tag = f'"{page.version}"'
    headers = {**_HEADERS, "ETag": tag, "Vary": "Accept-Encoding"}
    if part == _PART_THAT_CHANGES and if_none_match in {tag, f"W/{tag}"}:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return HTMLResponse(await run_in_threadpool(gzip.decompress, page.body), headers=headers)
    return HTMLResponse(page.body, headers={**headers, "Content-Encoding": "gzip"})


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise HTTPException(404) from None
    if not -1 <= number <= _LARGEST_INDEX:  # the database would refuse to look for it
        raise HTTPException(404)
    return number


async def _connections_page(request: Request, user: GetUserDep) -> Response:
    there = await run_in_threadpool(airflow_database.connections, partial(_readable_connections, user))
    # Behind a proxy, the protocol of the request is not that of the browser.
    protocol = settings.base_url_parts().scheme or request.url.scheme
    here = f"{protocol}://{request.url.netloc}{request.scope['root_path']}/connections"
    rows = [(Link(one, f"{here}/{quote(one, safe='')}"),) for one in there]
    note = "Connections of secrets backends and of the environment are not listed; their pages exist all the same."
    table = Table("Connections", ("connection",), rows, note=note)
    found = f"{len(rows)} in Airflow's database."
    report = Report("Connections to the service", found, clock().utcnow(), parts=[table])
    return await run_in_threadpool(_as_page, report)


async def _connection_page(request: Request, connection_id: str, user: GetUserDep) -> Response:
    def check(_last: Checkup | None) -> Checkup:
        config = config_of(connection_id)
        return Checkup(list(checkup.examine(config)), config.base_url)

    try:
        done = await within(CHECKUP_SECONDS, request.app.state.checkups.look(connection_id, check, group=connection_id))
    except TooManyReadsError as error:
        done = Checkup([checkup.Finding("service", "FAIL", f"{error}; reload the page")])
    except TimeoutError:
        done = Checkup([checkup.Finding("service", "FAIL", "the service has not answered yet; reload the page")])
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything, with a secret in its text
        done = Checkup([checkup.Finding("connection", "FAIL", f"it cannot be used: {reading.error_text(error)}")])
    return await run_in_threadpool(_checkup_page, request, user, connection_id, done)


def _checkup_page(request: Request, user: BaseUser, connection_id: str, done: Checkup) -> Response:
    tables = _tables(request, user, done.base_url)
    report = checkup.to_report(f"Connection {connection_id}", done.findings, *tables)
    return _as_page(report, script=rendering.address("outside.js", request.scope["root_path"]))


def _readable_connections(user: BaseUser, ids: list[str]) -> Collection[str]:
    """Those of some connections that a user may read: not those of other teams, for example."""
    manager = get_auth_manager()
    if AIRFLOW_V_3_2_PLUS:
        allowed: set[str] = manager.get_authorized_connections(user=user)
        return allowed
    one_by_one = partial(manager.is_authorized_connection, method="GET", user=user)  # there are no teams
    return [one for one in ids if one_by_one(details=ConnectionDetails(conn_id=one))]


def _tables(request: Request, user: BaseUser, base_url: str | None) -> list[Table]:
    """What Airflow knows of waits, and of the runs on this server of which the user may read the task instances."""
    tables = [connection_view.waits_table(airflow_database.waits(), clock().utcnow())]
    if base_url is not None:
        runs = islice(_readable(request, user, airflow_database.latest_runs(base_url)), connection_view.SHOWN_RUNS)
        tables.append(connection_view.runs_table(list(runs)))
    return tables


def _readable(request: Request, user: BaseUser, runs: Iterable[LatestRun]) -> Iterator[LatestRun]:
    @cache
    def may_read(dag_id: str) -> bool:
        try:
            requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE, dag_id)(request, user)
        except HTTPException:
            return False
        return True

    return (run for run in runs if may_read(run.dag_id))


def _as_page(report: Report, script: str | None = None) -> Response:
    headers = {**_HEADERS, "Content-Security-Policy": _REPORT_POLICY}
    return HTMLResponse(as_html(report, script=script), headers=headers)


async def _refused(request: Request, error: Any) -> Response:
    text = _WORDS.get(error.status_code, str(error.detail))
    html = await run_in_threadpool(_message_page, text, request.scope["root_path"])
    return HTMLResponse(html, error.status_code, headers=_HEADERS)


async def _busy(request: Request, error: Any) -> Response:
    return await _refused(request, HTTPException(503, f"At the moment, {error}. Reload the page in a while."))


def _message_page(text: str, root: str) -> str:
    return rendering.page(rendering.message_part("This page cannot be shown", text), "Service", root)
