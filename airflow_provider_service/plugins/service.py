"""The plugin that adds pages about the service to Airflow 3.1 and newer. All processes load it, so it loads no page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from threading import Lock
from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_1_PLUS

from airflow_provider_service._airflow import settings
from airflow_provider_service._core.daemon_threads import in_daemon_thread

__all__ = ["ServicePlugin"]

URL_PREFIX = "/service-pages"
_Message = MutableMapping[str, Any]


class LazyApp:
    """The application of the pages, which is created at the first request."""

    def __init__(self) -> None:
        self._app: Any = None
        self._lock = Lock()

    async def __call__(
        self, scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
    ) -> None:
        app = self._app or await in_daemon_thread(self._make)  # its imports take a while
        await app(scope, receive, send)

    def _make(self) -> Any:
        from airflow_provider_service.plugins._app import make_app

        with self._lock:
            self._app = self._app or make_app()
            return self._app


def address(path: str) -> str:
    return f"{settings.base_path()}{URL_PREFIX}{path}"


def _view(name: str, route: str, destination: str, path: str, **more: str) -> dict[str, str]:
    return {"name": name, "url_route": route, "destination": destination, "href": address(path), **more}


class ServicePlugin(AirflowPlugin):
    """Pages about the service in Airflow."""

    name = "service"
    fastapi_apps = (
        [{"app": LazyApp(), "url_prefix": URL_PREFIX, "name": "Pages about the service"}] if AIRFLOW_V_3_1_PLUS else []
    )
    # Bookmarks hold the routes, as /plugin/service_executions, so they stay when a name changes.
    external_views = (
        [
            _view(
                "n8n execution",
                "service_execution",
                "task_instance",
                "/dags/{DAG_ID}/runs/{RUN_ID}/tasks/{TASK_ID}/{MAP_INDEX}",
            ),
            _view("n8n executions", "service_executions", "nav", "/executions", category="browse"),
            _view("n8n executions", "service_executions_of_dag", "dag", "/dags/{DAG_ID}/executions"),
            _view("n8n executions", "service_executions_of_run", "dag_run", "/dags/{DAG_ID}/runs/{RUN_ID}/executions"),
            _view("n8n connections", "service_connections", "nav", "/connections", category="admin"),
        ]
        if AIRFLOW_V_3_1_PLUS
        else []
    )
