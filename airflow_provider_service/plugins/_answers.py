"""The common part of the answers of all pages: their headers, and what the reader may see."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse

from airflow_provider_service._core.pages import rendering

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

    from airflow_provider_service._core.pages.executions import TaskExecution
    from airflow_provider_service._core.pages.rendering import Part

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": rendering.POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def page(request: Request, part: Part, title: str, status: int = 200, *, takes: str = "") -> HTMLResponse:
    """Answer with a page, or only with the part of it that changes, if that is requested."""
    is_whole = request.query_params.get("part") != "view"
    html = rendering.page(part, title, request.scope["root_path"], takes=takes) if is_whole else part.html
    return HTMLResponse(html, status, headers=HEADERS)


def readable(request: Request, user: BaseUser, executions: Iterable[TaskExecution]) -> Iterable[TaskExecution]:
    """Select the executions whose task instances the user may read."""

    @cache
    def may_read(dag_id: str) -> bool:
        try:
            requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE, dag_id)(request, user)
        except HTTPException:
            return False
        return True

    return (one for one in executions if may_read(one.dag_id))
