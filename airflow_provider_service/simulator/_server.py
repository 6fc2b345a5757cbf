"""ServiceSimulator: the simulated service on a port of this machine, for tests and demos."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import uvicorn
from starlette.types import ASGIApp, Scope

from airflow_provider_service.simulator._app import API_ROOT, build_app, listen, without_address
from airflow_provider_service.simulator._clock import Clock, with_date
from airflow_provider_service.simulator._engine.engine import STATUSES, TERMINAL, Execution
from airflow_provider_service.simulator._faults import (
    Fault,
    FaultBoard,
    FaultKind,
    FaultLayer,
    RecordedRequest,
    RecordingLayer,
)
from airflow_provider_service.simulator._routes.workflows import workflow_json
from airflow_provider_service.simulator._samples import Behaviour, ResponseMode, webhook_workflow
from airflow_provider_service.simulator._state import State

Result = TypeVar("Result")

DEFAULT_KEY_HEADER = "X-SERVICE-API-KEY"

_START_SECONDS = 10.0
_STOP_SECONDS = 5.0
# Only keeps a caller from hanging forever: on a busy machine, the server's thread may not run for a while.
_ANSWER_SECONDS = 120.0
_running: set[ServiceSimulator] = set()


def is_any_request_processed(since: float) -> bool:
    """Whether a simulator of this process has requests, begun or finished since then, that it does not hold open."""
    return any(
        simulator._recording.unfinished > simulator.state.held and simulator._recording.changed > since
        for simulator in tuple(_running)
    )


class ServiceSimulator:
    """The service in this process: a server in a thread, with its state and clock accessible to the test.

    Use it as a context manager, or call :meth:`start` and :meth:`stop`. It can be started once.

    :param host: address to listen on
    :param port: port to listen on; 0 picks a free one
    :param api_key: key with every scope (default: a random one)
    :param licensed: whether licensed features work; otherwise they answer 403
    :param concurrency_limit: maximum number of concurrent production runs (default: no limit)
    :param queue_mode: behave like a server with workers: runs beyond the limit are not listed, and their calls are
        answered
    :param publish_delay: seconds until publishing and unpublishing take effect
    :param boot_seconds: seconds after the start during which every path answers with an HTML 404
    """

    #: The state of the service.
    state: State
    #: A key with every scope.
    api_key: str

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str | None = None,
        licensed: bool = True,
        concurrency_limit: int | None = None,
        queue_mode: bool = False,
        publish_delay: float = 0.1,
        boot_seconds: float = 0.0,
    ) -> None:
        self._new_state = partial(
            State,
            licensed=licensed,
            concurrency_limit=concurrency_limit,
            queue_mode=queue_mode,
            publish_delay=publish_delay,
        )
        self.state = self._new_state()
        self.api_key = self.state.add_key(secret=api_key).secret
        self._host = host
        self._port = port
        self._boot_seconds = boot_seconds
        self._faults = FaultBoard(self._disconnect)
        self._recording = RecordingLayer(self._application())
        self._server: uvicorn.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------ addresses and keys

    @property
    def base_url(self) -> str:
        """Address of the service, without a path."""
        return self.state.base_url

    @property
    def api_url(self) -> str:
        """Address that every path of the API is relative to."""
        return f"{self.base_url}{API_ROOT}"

    @property
    def clock(self) -> Clock:
        """The service's clock; ``advance(seconds)`` lets time pass, ``shift(seconds)`` makes it wrong."""
        return self.state.clock

    def connection_json(self, header: str = DEFAULT_KEY_HEADER) -> str:
        """The connection as JSON, for ``AIRFLOW_CONN_SERVICE_DEFAULT``.

        :param header: header that carries the key; ``X-N8N-API-KEY`` is accepted too
        """
        fields: dict[str, Any] = {"conn_type": "service", "host": self.base_url, "password": self.api_key}
        if header != DEFAULT_KEY_HEADER:
            fields["extra"] = {"key_header": header}
        return json.dumps(fields)

    def connection_uri(self, header: str = DEFAULT_KEY_HEADER) -> str:
        """The connection as a URI, for ``AIRFLOW_CONN_SERVICE_DEFAULT``."""
        extra = "" if header == DEFAULT_KEY_HEADER else f"?{urlencode({'key_header': header})}"
        return f"service://:{quote(self.api_key, safe='')}@{quote(self.base_url, safe='')}/{extra}"

    def create_key(self, scopes: Iterable[str] | None = None) -> str:
        """Create another key.

        :param scopes: scopes of the key, e.g. ``["workflow:read"]``; None for all
        """
        return self.state.add_key(scopes).secret

    def revoke_key(self, key: str) -> None:
        """Make a key invalid."""
        self.state.keys.pop(key, None)

    @property
    def version(self) -> str:
        """The version that the service claims to have; can be set.

        An older version lacks the operations and query parameters that its published contract lacks. One before 2.30
        also expects the data of credentials in another form. Otherwise, it behaves like the newest version.
        """
        return self.state.version

    @version.setter
    def version(self, version: str) -> None:
        self.state.version = version

    @property
    def mcp_api_key(self) -> str:
        """Key of the MCP endpoint, for the connection's extra of this name."""
        return self.state.mcp_key

    @property
    def mcp_enabled(self) -> bool:
        """Whether MCP access is switched on; True at first, and can be set."""
        return self.state.mcp_enabled

    @mcp_enabled.setter
    def mcp_enabled(self, enabled: bool) -> None:
        self.state.mcp_enabled = enabled

    # ------------------------------------------------------------ life cycle

    def start(self) -> ServiceSimulator:
        """Start to listen; returns once connections are accepted.

        :raises OSError: the port is taken
        :raises RuntimeError: it has already been started, or did not start in time
        """
        if self._thread is not None:
            raise RuntimeError("the simulator has already been started")
        listener = listen(self._host, self._port)
        self._port = listener.getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.state.base_url = f"http://{host}:{self._port}"
        self._boot(self._boot_seconds)
        config = uvicorn.Config(
            without_address(self._recording),
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, args=(self._server, listener), name="service-simulator")
        self._thread.daemon = True
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the simulator did not start")
            time.sleep(0.005)
        _running.add(self)
        return self

    def _serve(self, server: uvicorn.Server, listener: socket.socket) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            await server.serve(sockets=[listener])

        asyncio.run(main())

    def stop(self) -> None:
        """Stop listening and end the thread; open calls are answered with 503. Safe to repeat."""
        _running.discard(self)
        if self._thread is None or self._server is None or not self._thread.is_alive():
            return
        self.state.stopping = True
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)

    def __enter__(self) -> ServiceSimulator:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def reset(self) -> None:
        """Become a new, empty service with the same address, settings and key; cheaper than another simulator."""

        def renew() -> None:
            before, self.state = self.state, self._new_state(clock=Clock(self.clock.source))
            before.stopping = True
            self.state.base_url = before.base_url
            self.state.add_key(secret=self.api_key)
            self.state.mcp_key = before.mcp_key
            self._faults.clear()
            self._recording.requests.clear()
            self._recording.app = self._application()

        self.in_loop(renew)

    def _application(self) -> ASGIApp:
        return with_date(FaultLayer(build_app(self.state), self.state, self._faults), self.clock.now)

    def restart(self, boot_seconds: float = 0.5) -> None:
        """Crash and start again: running executions crash, queued ones begin anew, waiting ones survive.

        :param boot_seconds: seconds afterwards during which every path answers with an HTML 404
        """

        def die() -> None:
            self.state.settle()
            until = self._boot(boot_seconds)
            self.state.engine.restart(until)
            for connection in self._connections():
                connection.transport.abort()

        self.in_loop(die)
        # Connections close one iteration of the loop later; the caller must not find one half open.
        self.in_loop(lambda: None)

    def _boot(self, seconds: float) -> datetime:
        until = self.clock.now() + timedelta(seconds=seconds)
        self.state.booting_until = until if seconds else None
        return until

    def _connections(self) -> list[Any]:
        return list(self._server.server_state.connections) if self._server else []

    def _disconnect(self, scope: Scope, abort: bool) -> None:
        for connection in self._connections():
            if connection.client == tuple(scope["client"]):
                (connection.transport.abort if abort else connection.transport.close)()

    # ------------------------------------------------------------ access to the server's event loop

    def in_loop(self, action: Callable[[], Result]) -> Result:
        """Run a function in the server's event loop, where nothing else runs in the meantime, and return its result.

        :param action: must not wait: no request is answered until it returns
        :raises BaseException: any exception that ``action`` raises
        """
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            return action()
        done: Future[Result] = Future()

        def act() -> None:
            try:
                done.set_result(action())
            except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
                done.set_exception(error)

        self._loop.call_soon_threadsafe(act)
        return done.result(_ANSWER_SECONDS)

    def wrap(self, layer: Callable[[ASGIApp], ASGIApp]) -> None:
        """Put an ASGI layer around the service, such as a proxy; :meth:`reset` removes it.

        :param layer: wraps the current application in a new one; requests are recorded before they reach it. It runs in
            the loop of the service, so it must not call the methods of this class that wait for that loop.
        """
        self._recording.app = layer(self._recording.app)

    # ------------------------------------------------------------ faults and records

    def inject(
        self,
        kind: FaultKind,
        *,
        times: int | None = 1,
        method: str | None = None,
        path: str | None = None,
        query: str | None = None,
        body: str | None = None,
        status: int = 503,
        retry_after: int | str | None = None,
        seconds: float = 0.0,
        after_processing: bool = False,
        skip: int = 0,
    ) -> None:
        """Inject a fault into the next requests.

        :param kind: "latency" waits ``seconds``; "status" and "html" answer ``status``; "drop" closes the connection
            without an answer; "truncate" announces more than it sends
        :param times: number of requests; None for all until :meth:`clear_faults`
        :param method: only requests with this method
        :param path: only requests whose path contains a match of this regular expression
        :param query: only requests whose query, as it was sent, contains a match of this regular expression
        :param body: only requests whose body contains a match of this regular expression
        :param status: HTTP status of the answer for "status" and "html"
        :param seconds: how long "latency" waits
        :param retry_after: value of the Retry-After header
        :param after_processing: the request takes effect, and only its answer is lost or replaced
        :param skip: number of these requests that pass first
        """
        fault = Fault(kind, times, method, path, status, retry_after, seconds, after_processing, body, skip, query)
        self.in_loop(lambda: self._faults.faults.append(fault))

    @property
    def has_faults(self) -> bool:
        """Whether some injected faults apply to further requests."""
        return bool(self._faults.faults)

    def clear_faults(self) -> None:
        """Remove all injected faults."""
        self.in_loop(self._faults.clear)

    @property
    def requests(self) -> list[RecordedRequest]:
        """The latest requests, oldest first."""
        return list(self._recording.requests)  # others may come while they are read

    def clear_requests(self) -> None:
        """Forget the requests seen so far."""
        self.in_loop(self._recording.requests.clear)

    # ------------------------------------------------------------ workflows and executions

    def create_webhook_workflow(
        self,
        name: str = "Webhook workflow",
        *,
        path: str,
        behaviour: Behaviour = "immediate",
        seconds: float | None = None,
        response_mode: ResponseMode = "onReceived",
        active: bool = True,
        respond_with_id: bool = False,
    ) -> dict[str, Any]:
        """Create a workflow that is started by a ``POST`` to ``{base_url}/webhook/{path}``.

        :param path: path of the webhook
        :param behaviour: "immediate" succeeds at once, "long" runs for ``seconds`` (below 65, default 10), "waiting"
            sleeps for ``seconds`` (from 65, default 120), "failing" fails
        :param response_mode: when the webhook answers, as its node's ``responseMode``
        :param active: publish the workflow; it is live when this returns
        :param respond_with_id: let the webhook answer ``{"executionId": "..."}``
        :returns: the workflow as the API returns it
        """
        body = webhook_workflow(
            name, path, behaviour, seconds=seconds, response_mode=response_mode, respond_with_id=respond_with_id
        )

        def create() -> dict[str, Any]:
            workflow = self.state.workflows.create(body)
            if active:
                self.state.workflows.publish(workflow, delay=0)
                self.state.settle()
            return workflow_json(self.state, workflow)

        return self.in_loop(create)

    def start_execution(
        self,
        workflow_id: str,
        *,
        status: str = "running",
        mode: str = "webhook",
        seconds: float | None = None,
        age: float = 0.0,
    ) -> str:
        """Set up an execution in any status; no node of the workflow is run.

        :param workflow_id: workflow of the execution
        :param status: new, running, waiting, success, error, canceled, crashed or unknown
        :param mode: what started it, such as ``trigger`` for its own schedule
        :param seconds: seconds of the clock after which it succeeds; None if it does not change by itself
        :param age: seconds since it started
        :returns: its id
        :raises ValueError: unknown workflow or status
        """
        if status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}")

        def set_up() -> str:
            self.state.settle()
            workflow = self.state.workflows.find(workflow_id)
            if workflow is None:
                raise ValueError(f"there is no workflow {workflow_id}")
            snapshot = workflow.snapshot(workflow.active_version)
            execution = self.state.engine.set_up(
                snapshot, workflow.project_id, status=status, mode=mode, seconds=seconds, age=age
            )
            return str(execution.id)

        return self.in_loop(set_up)

    def finish_execution(
        self, execution_id: str, status: str = "success", *, node: str | None = None, message: str | None = None
    ) -> None:
        """End an execution.

        :param execution_id: its id
        :param status: success, error, canceled or crashed
        :param node: name of the node it ends at
        :param message: message of the error
        :raises ValueError: unknown execution or status
        """
        if status not in TERMINAL:
            raise ValueError(f"status must be one of {', '.join(TERMINAL)}")
        self._with_execution(
            execution_id, lambda execution: self.state.engine.finish(execution, status, node=node, message=message)
        )

    def forget_execution(self, execution_id: str) -> None:
        """Make an execution vanish, as pruning does.

        :param execution_id: its id
        :raises ValueError: unknown execution
        """
        self._with_execution(execution_id, self.state.engine.remove)

    def _with_execution(self, execution_id: str, action: Callable[[Execution], None]) -> None:
        def act() -> None:
            self.state.settle()
            execution = self.state.executions.get(int(execution_id))
            if execution is None:
                raise ValueError(f"there is no execution {execution_id}")
            action(execution)

        self.in_loop(act)
