"""The simulated service in a separate process, controlled from here."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator import _samples as samples
from tests.overloaded import refuse_some

from .gate import Call, Gate, Window

START_SECONDS = 60


class SimulatedService:
    """A running simulator; use it as a context manager. It ends with the process that made it.

    - ``base_url``, ``api_key``, ``mcp_api_key``: where it is, and its keys.
    """

    name = "simulator"

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end,), name="simulated-service", daemon=True)
        self._far_end = far_end
        self._turn = threading.Lock()

    def __enter__(self) -> SimulatedService:
        self._process.start()
        self._far_end.close()  # otherwise its end would not close this one
        if not self._pipe.poll(START_SECONDS):
            raise RuntimeError("the simulator does not come up")
        self.base_url, self.api_key, self.mcp_api_key = self._pipe.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        self._process.join(60)

    def connection(self) -> dict[str, Any]:
        """The fields of the connection that leads to it, as Airflow's API takes them."""
        return {
            "connection_id": "service_default",
            "conn_type": "service",
            "host": self.base_url,
            "password": self.api_key,
            "extra": json.dumps({"mcp_api_key": self.mcp_api_key}),
        }

    def client(self) -> ServiceClient:
        """A client for checking the service's contents."""
        return ServiceClient(ServiceConfig(base_url=self.base_url, api_key=self.api_key))

    def create_workflow(self, name: str, nodes: list[dict[str, Any]]) -> str:
        """Create an active workflow of a chain of nodes, which MCP may start, and return its id."""
        return str(self._ask("create_workflow", name, nodes))

    def finish(self, execution_id: str, status: str = "success") -> None:
        """End an execution."""
        self._ask("finish", execution_id, status)

    def start_execution(self, workflow_id: str, status: str, seconds: float | None = None) -> str:
        """Set up an execution, which succeeds after some seconds or stays as it is."""
        return str(self._ask("start_execution", workflow_id, status, seconds))

    def arm(self, window: Window | None) -> None:
        """Hold requests of one window, and release those that are held: see :class:`Gate`."""
        self._ask("arm", window)

    def held(self) -> int:
        """How many requests are held."""
        return int(self._ask("held"))

    def calls(self) -> list[Call]:
        """The webhook calls that carried a run key, oldest first."""
        return [Call(*one) for one in self._ask("calls")]

    def count_requests(self) -> int:
        """Requests of any kind so far."""
        return int(self._ask("count_requests"))

    @contextmanager
    def refusing(self, share: float) -> Iterator[None]:
        """Meanwhile, it refuses a share of the requests with a far ``Retry-After``."""
        self._ask("refuse", share)
        yield
        self._ask("refuse_no_more")

    def delay_writes(self, seconds: float) -> None:
        """Answer each change of a workflow late from now on, or no longer."""
        self._ask("delay_writes", seconds)

    @contextmanager
    def replaced_key(self) -> Iterator[None]:
        """It has a second key, whose user deletes the first one at the end."""
        old, self.api_key = self.api_key, str(self._ask("create_key"))
        yield
        self._ask("revoke_key", old)

    def has_no_audit_findings(self) -> None:
        """Make audits find nothing from now on."""
        self._ask("has_no_audit_findings")

    def _ask(self, name: str, *arguments: Any) -> Any:
        with self._turn:
            self._pipe.send((name, *arguments))
            answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Far:
    """What the other process answers."""

    def __init__(self, simulator: ServiceSimulator) -> None:
        self._simulator = simulator
        simulator.wrap(self._put_gate)

    def _put_gate(self, app: Any) -> Gate:
        self._gate = Gate(app)
        return self._gate

    def create_workflow(self, name: str, nodes: list[dict[str, Any]]) -> str:
        state = self._simulator.state

        def create() -> str:
            workflow = state.workflows.create({**samples.chain(name, nodes), "settings": {"availableInMCP": True}})
            state.workflows.publish(workflow, delay=0)
            state.settle()
            return str(workflow.id)

        return self._simulator.in_loop(create)

    def finish(self, execution_id: str, status: str) -> None:
        self._simulator.finish_execution(execution_id, status)

    def start_execution(self, workflow_id: str, status: str, seconds: float | None) -> str:
        return self._simulator.start_execution(workflow_id, status=status, seconds=seconds)

    def arm(self, window: Window | None) -> None:
        self._simulator.in_loop(lambda: self._gate.arm(window))

    def held(self) -> int:
        return self._gate.held

    def calls(self) -> list[tuple[str, str, float]]:
        return [tuple(one) for one in self._gate.calls]

    def count_requests(self) -> int:
        return self._gate.requests

    def refuse(self, share: float) -> None:
        self._no_more = refuse_some(self._simulator, share)

    def refuse_no_more(self) -> None:
        self._no_more.set()

    def delay_writes(self, seconds: float) -> None:
        self._simulator.clear_faults()
        late = {"seconds": seconds, "times": None, "path": "/workflows", "after_processing": True}
        for method in ("POST", "PUT"):
            self._simulator.inject("latency", method=method, **late)

    def create_key(self) -> str:
        return self._simulator.create_key()

    def revoke_key(self, key: str) -> None:
        self._simulator.revoke_key(key)

    def has_no_audit_findings(self) -> None:
        self._simulator.state.audit.reports = {}


def _serve(pipe: Connection) -> None:
    with ServiceSimulator() as simulator:
        far = _Far(simulator)
        pipe.send((simulator.base_url, simulator.api_key, simulator.mcp_api_key))
        while True:
            try:
                name, *arguments = pipe.recv()
            except EOFError:  # the process that asked is gone
                return
            try:
                answer = getattr(far, name)(*arguments)
            except Exception as error:  # noqa: BLE001 - raised by whoever asked
                answer = error
            pipe.send(answer)
