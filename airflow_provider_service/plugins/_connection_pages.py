"""The page of a connection, and the list of connections with the state of each."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_2_PLUS
from fastapi import Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from airflow_provider_service._airflow import settings
from airflow_provider_service._core.pages import checkup, listing, reading
from airflow_provider_service._core.pages.checkup import Finding, Verdict
from airflow_provider_service._core.pages.connection_view import SHOWN_RUNS, ConnectionView
from airflow_provider_service._core.pages.snapshots import Snapshots, TooManyReadsError
from airflow_provider_service.client._clock import clock
from airflow_provider_service.plugins import _airflow_tables, _answers
from airflow_provider_service.plugins._airflow_tables import Executions
from airflow_provider_service.plugins._execution_pages import read_executions
from airflow_provider_service.plugins._task_pages import config_of, within

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

#: Seconds for which an examination of a connection is kept.
KEEP_CHECKUP_SECONDS = 30.0
#: Seconds that a page waits for an examination.
CHECKUP_SECONDS = 60.0
#: Number of connections that the list examines; it shows only the names of the others.
MAX_EXAMINED = 20


class Checkup(NamedTuple):
    """The findings about a connection, and the server that it leads to, if that is known."""

    findings: list[Finding]
    base_url: str | None = None


def snapshots(processes: int) -> Snapshots[Checkup]:
    """Create the store of the latest examination of each connection."""
    return Snapshots(lambda _: KEEP_CHECKUP_SECONDS, processes=processes)


async def connections_page(request: Request, user: GetUserDep) -> Response:
    """List the connections that the user may read, and examine some; the page renews itself until that is done."""
    lacks: list[str] = []
    there = await run_in_threadpool(_airflow_tables.connections, partial(_readable, user), lacks)
    verdicts = {one: _verdict_so_far(request, one) for one in there[:MAX_EXAMINED]}
    return await run_in_threadpool(_list, request, there, verdicts, lacks)


def _list(request: Request, there: list[str], verdicts: dict[str, Verdict | None], lacks: list[str]) -> Response:
    return _answers.page(request, listing.connections_part(there, verdicts, lacks), "Connections to the service")


def _verdict_so_far(request: Request, connection_id: str) -> Verdict | None:
    try:
        examination = _examine(request, connection_id)
    except TooManyReadsError:
        return None
    return checkup.verdict(_found(examination).findings) if examination.done() else None


async def connection_page(request: Request, connection_id: str, user: GetUserDep) -> Response:
    """Show the findings about a connection, and what Airflow knows about its server."""
    try:
        examination = _examine(request, connection_id)
        await within(CHECKUP_SECONDS, examination)
    except TooManyReadsError as error:
        done = Checkup([Finding("service", "FAIL", f"{error}; reload the page")])
    except TimeoutError:
        done = Checkup([Finding("service", "FAIL", "the service has not answered yet; reload the page")])
    except Exception:  # noqa: BLE001 - as in _found, which reports it
        done = _found(examination)
    else:
        done = _found(examination)
    known = Executions([], is_complete=True) if done.base_url is None else await read_executions(request)
    return await run_in_threadpool(_page, request, user, connection_id, done, known)


def _examine(request: Request, connection_id: str) -> Future[Checkup]:
    def check(_last: Checkup | None) -> Checkup:
        config = config_of(connection_id)
        return Checkup(list(checkup.examine(config)), config.base_url)

    checkups: Snapshots[Checkup] = request.app.state.checkups
    return checkups.look(connection_id, check, group=connection_id)


def _found(examination: Future[Checkup]) -> Checkup:
    try:
        return examination.result()
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything, with a secret in its text
        return Checkup([Finding("connection", "FAIL", f"it cannot be used: {reading.error_text(error)}")])


def _page(request: Request, user: BaseUser, connection_id: str, done: Checkup, executions: Executions) -> Response:
    runs = () if done.base_url is None else _airflow_tables.latest_runs(executions.known, done.base_url)
    lacks = list(executions.lacks)
    view = ConnectionView(
        connection_id,
        checkup.complete(done.findings),
        done.base_url,
        waits=_airflow_tables.waits(lacks),
        runs=list(islice(_answers.readable(request, user, runs), SHOWN_RUNS)),
        made_at=clock().utcnow(),
        lacks=lacks,
    )
    part = listing.connection_part(view, airflow=settings.base_path())
    return _answers.page(request, part, f"Connection {connection_id}")


def _readable(user: BaseUser, ids: list[str]) -> Collection[str]:
    """Select the connections that a user may read, which excludes those of other teams, for example."""
    manager = get_auth_manager()
    if AIRFLOW_V_3_2_PLUS:
        allowed: set[str] = manager.get_authorized_connections(user=user)
        return allowed
    one_by_one = partial(manager.is_authorized_connection, method="GET", user=user)  # there are no teams
    return [one for one in ids if one_by_one(details=ConnectionDetails(conn_id=one))]
