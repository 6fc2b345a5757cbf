"""The tab of a task's execution without Airflow around it."""

from __future__ import annotations

from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.execution_view import view_of
from airflow_provider_service._core.pages.reading import ExecutionReading
from airflow_provider_service._core.pages.task_view import TaskView
from airflow_provider_service.client.models import Execution

from .serving import Serving

_AROUND = b"""<!DOCTYPE html>
<title>Airflow</title><link rel="icon" href="data:,">
<iframe src="/page" width="1300" height="1200"></iframe>
"""
#: A task that runs an execution.
TASK = TaskView("dag", "run", "task", -1, None, True, "service_default", "7")


class ExecutionPage(Serving):
    """A server of one page, on which an execution goes on; use it as a context manager.

    At ``/around`` is a page that shows it in a frame, as Airflow does.

    - ``execution``: what the page shows, as the service's data holds it.
    - ``asked``: the addresses at which the page was asked for.

    :param task: the task that runs it, but for its state.
    """

    def __init__(self, execution: dict[str, Any], task: TaskView = TASK) -> None:
        self.execution, self._task = execution, task
        self.asked: list[str] = []
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content_type, body = page._answer(self.path)
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                if body != _AROUND:
                    self.send_header("Content-Security-Policy", rendering.POLICY)
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
        address = urlsplit(path)
        name = address.path.rpartition("/")[2]
        if name in rendering.ASSETS:
            return rendering.ASSETS[name], rendering.asset(name)
        if name == "around":
            return "text/html; charset=utf-8", _AROUND
        self.asked.append(path)
        execution = Execution.model_validate(self.execution)
        seen = rendering.drawn(ExecutionReading("https://service.example.com", view_of(execution)))
        state = {"success": "success", "error": "failed"}.get(execution.status, "deferred")
        query = parse_qs(address.query)
        number = int(query["try_number"][0]) if "try_number" in query else self._task.number
        part = rendering.task_part(replace(self._task, state=state, number=number), seen)
        html = part.html if "part" in query else rendering.page(part, "Orders", "", takes="try_number")
        return "text/html; charset=utf-8", html.encode()
