"""The application behind the pages, which checks who may see them. Airflow's API server runs it."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_connection, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from airflow_provider_service._airflow import settings
from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.reading import TooManyReadsError
from airflow_provider_service.plugins import _pages
from airflow_provider_service.plugins._pages import ListPages, TaskPages

_UNMAPPED, _LARGEST_NUMBER = "{MAP_INDEX}", 2**31 - 1
_KEPT = {**_pages.HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
_READS_TASKS = Depends(requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE))
_READS_CONNECTIONS = Depends(requires_access_connection("GET"))
_WORDS = {
    401: "You are not logged in to Airflow. Log in, and reload the page.",
    403: "Your user may not read this in Airflow.",
    404: "Airflow knows nothing by this name.",
}


def make_app() -> FastAPI:
    app = FastAPI(title="Pages about the service", docs_url=None, redoc_url=None, openapi_url=None)
    workers = settings.api_workers()
    app.state.tasks = TaskPages(workers)
    app.add_api_route("/assets/{version}/{name}", _asset, methods=["GET"])
    app.add_api_route(
        "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/{map_index}",
        _task_page,
        methods=["GET"],
        dependencies=[_READS_TASKS],
    )
    app.state.executions = ListPages(workers)
    app.add_api_route("/executions", _pages.executions_page, methods=["GET"])
    for path in ("/dags/{dag_id}/executions", "/dags/{dag_id}/runs/{run_id}/executions"):
        app.add_api_route(path, _pages.executions_page, methods=["GET"], dependencies=[_READS_TASKS])
    app.state.checkups = _pages.connection_snapshots(workers)
    app.add_api_route("/connections", _pages.connections_page, methods=["GET"], dependencies=[_READS_CONNECTIONS])
    app.add_api_route(
        "/connections/{connection_id}", _pages.connection_page, methods=["GET"], dependencies=[_READS_CONNECTIONS]
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
    try_number: str | None = None,
) -> Response:
    index = -1 if map_index == _UNMAPPED else _number(map_index)
    attempt = None if try_number is None else _number(try_number)
    pages: TaskPages = request.app.state.tasks
    key = (dag_id, run_id, task_id, index, attempt)
    page = await pages.get(key, request.scope["root_path"], whole=not _pages.is_part(request))
    if page is None:
        raise HTTPException(404)
    return await _pages.answer(request, page)


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise HTTPException(404) from None
    if not -1 <= number <= _LARGEST_NUMBER:  # the database would refuse the number
        raise HTTPException(404)
    return number


async def _refused(request: Request, error: Any) -> Response:
    text = _WORDS.get(error.status_code, str(error.detail))
    return await run_in_threadpool(_message_page, request, text, error.status_code)


async def _busy(request: Request, error: Any) -> Response:
    return await _refused(request, HTTPException(503, f"At the moment, {error}. Reload the page in a while."))


def _message_page(request: Request, text: str, status: int) -> Response:
    return _pages.page(request, rendering.message_part("This page cannot be shown", text), "n8n", status)
