"""The service that the suite runs against: the simulator, or a real server of one of several generations."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import requests

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator._gateway import OPERATIONS
from airflow_provider_service.simulator._server import ServiceSimulator
from tests.client.contract import CONTRACT

from .differences import GATED, difference

if TYPE_CHECKING:
    from tests.live.servers import LiveServer

    from .recording import Showing

Progress = Callable[[str], None]
#: Gets every answer that a client of a target was given; its ``request`` is what was sent.
Listener = Callable[[requests.Response], None]

KEY_HEADER = "X-N8N-API-KEY"
SIMULATED_BOOT_SECONDS = 5.0


class Target(ABC):
    """A running service. Children say how it is run.

    - ``name``: ``simulator``, or a generation of the server such as ``2.41``.
    - ``deployment``: ``single``, or ``queue`` for a server with a worker.
    - ``free_edition``: whether gated operations are refused.
    - ``base_url``, ``api_key`` (all scopes), ``key_header``.
    - ``listeners``: called with every answer to a client of this target.
    """

    name: str
    deployment: str = "single"
    free_edition: bool
    key_header = KEY_HEADER

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self.showing: Showing | None = None
        self._clients: dict[str, ServiceClient] = {}
        self._keys_without: dict[str, str] = {}

    # ------------------------------------------------------------ what children provide

    @property
    @abstractmethod
    def base_url(self) -> str:
        """Address without a path."""

    @property
    @abstractmethod
    def api_key(self) -> str:
        """A key with all scopes."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The version that it says it is."""

    @property
    @abstractmethod
    def scopes(self) -> frozenset[str]:
        """Every scope that a key can hold."""

    @abstractmethod
    def create_key(self, scopes: Iterable[str]) -> str:
        """Make a key that holds only these scopes."""

    @abstractmethod
    def offers(self, operation: str) -> bool:
        """Whether this generation has the operation, or a parameter of it, as in ``list_executions?startedAfter``."""

    @abstractmethod
    def own(self, *, concurrency_limit: int | None = None, licensed: bool = False) -> AbstractContextManager[OwnTarget]:
        """A fresh service of the same kind, that a test may kill and restart.

        :param concurrency_limit: concurrent production runs.
        :param licensed: whether licensed features work, if the target can have them.
        """

    @abstractmethod
    def projects(self) -> list[dict[str, Any]]:
        """Every project, each with ``id``, ``name`` and ``type``, whether or not the edition shows them."""

    def personal_project(self, email: str) -> str:
        """The id of a user's own project, whose name holds the address."""
        return next(str(one["id"]) for one in self.projects() if email in one["name"])

    @abstractmethod
    def pass_time(self, seconds: float) -> None:
        """Advance the service's clock; a real server needs that time, so afterwards poll for the expected result."""

    @property
    @abstractmethod
    def mcp_api_key(self) -> str:
        """A key of the MCP endpoint."""

    @abstractmethod
    def switch_mcp(self, on: bool) -> None:
        """Switch the MCP endpoint on or off."""

    @abstractmethod
    def start_by_schedule(self, workflow_id: str) -> None:
        """Let the workflow's own schedule start it soon, which a real server does by itself."""

    # ------------------------------------------------------------ using it

    @property
    def client(self) -> ServiceClient:
        """A client with all scopes."""
        return self.client_for(self.api_key)

    def client_for(self, key: str) -> ServiceClient:
        """A client with a key of its own. It gives up at once, so that a failure is seen and not repeated."""
        if key not in self._clients:
            self._clients[key] = self.client_of(api_key=key)
        return self._clients[key]

    def client_of(self, **settings: Any) -> ServiceClient:
        """The same with other settings of the connection; the caller closes it."""
        usual = {"base_url": self.base_url, "api_key": self.api_key, "key_header": self.key_header}
        client = ServiceClient(ServiceConfig(**{**usual, "retry_deadline": 0, "timeout": 60, **settings}))
        client.transport._session.trust_env = False
        client.transport._session.hooks["response"].append(self._heard)
        return client

    def key_without(self, scope: str) -> str:
        """A key that holds every scope but one."""
        if scope not in self._keys_without:
            self._keys_without[scope] = self.create_key(self.scopes - {scope})
        return self._keys_without[scope]

    def _heard(self, response: requests.Response, **_options: Any) -> None:
        for listener in self.listeners:
            listener(response)

    def raw(self, method: str, path: str, *, key: str | None = "", **options: Any) -> requests.Response:
        """Send a request below the API root as it stands, for shapes that the client hides.

        :param path: with the query string, which is sent as it is.
        :param key: the key to send; the one with all scopes when empty, none when None.
        """
        headers = {} if key is None else {self.key_header: key or self.api_key}
        headers.update(options.pop("headers", {}))
        return self.outside(method, f"/api/v1{path}", headers=headers, **options)

    def outside(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request below the base URL, without the key: health, webhooks."""
        # A server closes a connection that has been idle for some seconds, perhaps just when a request is on its way.
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, self.base_url + path, **{"timeout": 60, **options})

    def differs(self, topic: str) -> bool:
        """Whether this target is known to differ in a topic; the reason goes into the record of the run."""
        found = difference(topic, self.name) or difference(topic, self.deployment)
        if found and self.showing:
            self.showing.differs(found.operation, found.reason)
        return found is not None

    def is_gated(self, operation: str) -> bool:
        """Whether the free edition refuses the operation."""
        return self.free_edition and operation in GATED

    def close(self) -> None:
        """Close the connections of all clients."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()


class OwnTarget(Target):
    """A separate target for one test."""

    @abstractmethod
    def kill(self) -> None:
        """End it as a power cut does."""

    @abstractmethod
    def restart(self) -> None:
        """Start it again with its data; returns when it accepts connections, which is before it is ready."""

    @abstractmethod
    def let_boot(self) -> None:
        """Let it become ready, after its boot has been looked at."""


class SimulatorTarget(OwnTarget):
    """The simulator, in this process, with all features licensed unless it was made otherwise."""

    name = "simulator"

    def __init__(self, simulator: ServiceSimulator) -> None:
        super().__init__()
        self.simulator = simulator
        self.free_edition = not simulator.state.licensed

    @property
    def base_url(self) -> str:
        return self.simulator.base_url

    @property
    def api_key(self) -> str:
        return self.simulator.api_key

    @property
    def version(self) -> str:
        return self.simulator.version

    @cached_property
    def scopes(self) -> frozenset[str]:
        return frozenset(scope for operation in OPERATIONS.values() for scope in operation.scopes)

    def create_key(self, scopes: Iterable[str]) -> str:
        return self.simulator.create_key(scopes)

    def offers(self, operation: str) -> bool:
        return True

    @contextmanager
    def own(self, *, concurrency_limit: int | None = None, licensed: bool = True) -> Iterator[OwnTarget]:
        with ServiceSimulator(concurrency_limit=concurrency_limit, licensed=licensed) as simulator:
            target = SimulatorTarget(simulator)
            yield target
            target.close()

    def projects(self) -> list[dict[str, Any]]:
        return list(self.simulator.state.projects.all())

    def pass_time(self, seconds: float) -> None:
        self.simulator.clock.advance(seconds)

    @property
    def mcp_api_key(self) -> str:
        return self.simulator.mcp_api_key

    def switch_mcp(self, on: bool) -> None:
        self.simulator.mcp_enabled = on

    def start_by_schedule(self, workflow_id: str) -> None:
        self.simulator.start_execution(workflow_id, status="running", mode="trigger")

    def kill(self) -> None:
        # Nobody is answered any more; what ran has crashed when it is back.
        self.simulator.inject("drop", times=None)

    def restart(self) -> None:
        self.simulator.restart(boot_seconds=SIMULATED_BOOT_SECONDS)
        self.simulator.clear_faults()

    def let_boot(self) -> None:
        self.pass_time(SIMULATED_BOOT_SECONDS)


class LiveTarget(OwnTarget):
    """A real server without a license."""

    free_edition = True

    def __init__(self, server: LiveServer, progress: Progress) -> None:
        super().__init__()
        self.server = server
        self.name, self.deployment = server.generation.name, server.deployment
        self._progress = progress

    @property
    def base_url(self) -> str:
        return self.server.base_url

    @property
    def api_key(self) -> str:
        return self.server.api_key

    @property
    def version(self) -> str:
        return self.server.version

    @cached_property
    def scopes(self) -> frozenset[str]:
        return frozenset(self.server.scopes)

    def create_key(self, scopes: Iterable[str]) -> str:
        return self.server.create_key(scopes)

    def offers(self, operation: str) -> bool:
        name, _, parameter = operation.partition("?")
        fact = CONTRACT[name]
        return (fact["method"], blank(fact["path"]), parameter) in self._published

    @cached_property
    def _published(self) -> frozenset[tuple[str, str, str]]:
        """Method and path of each operation, with the name of each of its parameters and without one."""
        document = self.server.openapi()
        shared = document.get("components", {}).get("parameters", {})
        found = set()
        for path, item in document["paths"].items():
            for method, described in item.items():
                listed = described.get("parameters", []) if isinstance(described, dict) else []
                known = [shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in listed]
                names = ["", *(one["name"] for one in known)]
                found |= {(method.upper(), blank(path), name) for name in names}
        return frozenset(found)

    @contextmanager
    def own(self, *, concurrency_limit: int | None = None, licensed: bool = False) -> Iterator[OwnTarget]:
        assert not licensed, "a real server has no license here"
        limit = {} if concurrency_limit is None else {"N8N_CONCURRENCY_PRODUCTION_LIMIT": str(concurrency_limit)}
        kind = type(self.server)
        with kind(self.server.generation, environment=limit, progress=self._progress) as server:
            target = LiveTarget(server, self._progress)
            yield target
            target.close()
            target.kill()  # asked to stop, it would wait for what still runs

    def projects(self) -> list[dict[str, Any]]:
        return self.server.owner.projects()

    def pass_time(self, seconds: float) -> None:
        """Its clock is the real one, so callers poll for what they wait for."""

    @cached_property
    def mcp_api_key(self) -> str:
        return self.server.owner.new_mcp_key()

    def switch_mcp(self, on: bool) -> None:
        self.server.owner.switch_mcp(on)

    def start_by_schedule(self, workflow_id: str) -> None:
        """Its workflow has a schedule of seconds."""

    def kill(self) -> None:
        self.server.halt(kill=True)

    def restart(self) -> None:
        self.server.resume()

    def let_boot(self) -> None:
        """It does so in its own time."""


def blank(path: str) -> str:
    """A path template without the names of its parameters, which the documents write in several ways."""
    return re.sub(r"{[^}]*}", "{}", path)
