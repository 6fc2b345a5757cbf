"""The tab of a task's execution without Airflow around it."""

from __future__ import annotations

from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.execution_view import view_of
from airflow_provider_service._core.pages.reading import ExecutionReading
from airflow_provider_service._core.pages.task_view import TaskView
from airflow_provider_service.client.models import Execution

from .serving import Serving

_TASK = TaskView("dag", "run", "task", -1, None, True, "service_default", "7")


class ExecutionPage(Serving):
    """A server of one page, on which an execution goes on; use it as a context manager.

    - ``execution``: what the page shows, as the service's data holds it.

    :param task: the task that runs it, but for its state.
    """

    def __init__(self, execution: dict[str, Any], task: TaskView = _TASK) -> None:
        self.execution, self._task = execution, task
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content_type, body = page._answer(self.path)
                self.send_response(200)
                for name, value in {
                    "Content-Type": content_type,
                    "Content-Security-Policy": rendering.POLICY,
                    "Content-Length": str(len(body)),
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        super().__init__(ThreadingHTTPServer(("127.0.0.1", 0), Handler))

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, path: str) -> tuple[str, bytes]:
        name = path.rpartition("/")[2]
        if name in rendering.ASSETS:
            return rendering.ASSETS[name], rendering.asset(name)
        execution = Execution.model_validate(self.execution)
        seen = rendering.drawn(ExecutionReading("https://service.example.com", view_of(execution)))
        state = {"success": "success", "error": "failed"}.get(execution.status, "deferred")
        part = rendering.task_part(replace(self._task, state=state), seen)
        html = part.html if path.endswith("?part=view") else rendering.page(part, "Orders", "")
        return "text/html; charset=utf-8", html.encode()
