"""The lists of executions that tasks have started or waited for, in all DAGs, in one DAG, or in one DAG run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from airflow_provider_service._airflow import settings
from airflow_provider_service._core.pages import listing
from airflow_provider_service._core.pages.executions import ExecutionsView, Search, SearchError
from airflow_provider_service._core.pages.snapshots import Snapshots
from airflow_provider_service.plugins import _airflow_tables, _answers
from airflow_provider_service.plugins._task_pages import within

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

    from airflow_provider_service.plugins._airflow_tables import Executions

#: Number of lists of executions that are kept, and for how many seconds.
LISTS, KEEP_SECONDS = 20, 5.0
_COMPLETE = "These are all that Airflow's database holds."
_LIMITED = (
    f"The page looks at the latest {_airflow_tables.MAX_DAG_RUNS:,} DAG runs, and at the latest "
    f"{_airflow_tables.MAX_EXECUTIONS:,} executions in them; there are earlier ones."
)


def snapshots(processes: int) -> Snapshots[Executions]:
    """Create the store of the executions that were last read for each DAG, and for all."""
    return Snapshots(lambda _: KEEP_SECONDS, processes=processes, capacity=LISTS)


async def read_executions(request: Request, dag_id: str | None = None, run_id: str | None = None) -> Executions:
    """Read the latest executions; for a while, all requests share one read."""
    read = partial(_airflow_tables.executions, dag_id, run_id)
    lists: Snapshots[Executions] = request.app.state.executions
    return await within(None, lists.look((dag_id, run_id), lambda _: read()))


async def executions_page(
    request: Request, user: GetUserDep, dag_id: str | None = None, run_id: str | None = None
) -> Response:
    """Answer with a list of executions, which a thread reads."""
    executions = await read_executions(request, dag_id, run_id)
    return await run_in_threadpool(_page, request, user, executions, dag_id, run_id)


def _page(request: Request, user: BaseUser, executions: Executions, dag_id: str | None, run_id: str | None) -> Response:
    known = list(_answers.readable(request, user, executions.known))
    problem = ""
    try:
        search = Search.of(request.query_params)
    except SearchError as error:
        search, known, problem = Search(dict(request.query_params)), [], str(error)
    lacks = list(executions.lacks)
    view = ExecutionsView(
        known,
        search,
        names=_airflow_tables.workflow_names(known, lacks),
        place=f"run {run_id}" if run_id is not None else f"DAG {dag_id}" if dag_id is not None else "",
        limit=_COMPLETE if executions.is_complete else "" if executions.lacks and not executions.known else _LIMITED,
        lacks=lacks,
    )
    part = listing.executions_part(view, airflow=settings.base_path(), problem=problem)
    return _answers.page(request, part, "Service executions", 400 if problem else 200, takes="zone")
