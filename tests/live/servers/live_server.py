"""A real server on loopback ports, with a data folder of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import requests
import yaml

from .errors import LiveServerError
from .generation import GENERATIONS, NEWEST, Generation
from .guarded_service import GuardedService
from .install import Progress, install, published_document, server_script
from .node import node_command, node_environment
from .owner import Owner, local_request
from .ports import free_ports


class LiveServer(GuardedService):
    """Install (when needed), start, set up, restart and stop one real server.

    Between ``start`` and ``stop`` the attributes below are valid, and those of the base.

    - ``base_url``, ``api_url``: without a trailing slash.
    - ``api_key``: holds every scope; ``key_header``: the header that carries it.
    - ``scopes``: every scope that this server knows, sorted.
    - ``generation``, ``version``, ``deployment``: what is running, and how.
    """

    key_header: ClassVar[str] = "X-N8N-API-KEY"
    deployment: ClassVar[str] = "single"

    def __init__(
        self,
        generation: Generation | str = NEWEST,
        *,
        environment: Mapping[str, str] | None = None,
        ready_seconds: float = 180.0,
        progress: Progress = lambda line: None,
    ) -> None:
        """Choose what to run; nothing happens yet.

        :param generation: a name in ``GENERATIONS``, e.g. ``"2.41"``, or a :class:`Generation`.
        :param environment: more variables for the server, e.g. ``{"N8N_CONCURRENCY_PRODUCTION_LIMIT": "1"}``.
        :param ready_seconds: deadline of each start.
        :param progress: takes a line of text now and then, while something long goes on.
        """
        self.generation = generation if isinstance(generation, Generation) else GENERATIONS[generation]
        self.version = self.generation.version
        super().__init__(f"server {self.version}", ready_seconds=ready_seconds, progress=progress)
        self._extra_environment = dict(environment or {})

    def restart(self, *, kill: bool = True, environment: Mapping[str, str] | None = None) -> None:
        """Stop and start again with the same ports, data folder, owner and keys; return when it is ready.

        :param kill: with KILL, as in a power cut; else asked to finish first.
        :param environment: replaces the extra variables given at first; ``None`` keeps them.
        :raises LiveServerError: it did not come back; contains the end of the log.
        """
        self.halt(kill=kill)
        if environment is not None:
            self._extra_environment = dict(environment)
        self._launch()

    def resume(self) -> None:
        """Only the second half of :meth:`restart`, and without waiting: see :meth:`wait_until_ready`."""
        if self._process is not None and self._process.exit_code is None:
            raise LiveServerError("The server is running.")
        self._spawn()

    def halt(self, *, kill: bool = True) -> None:
        """Only the first half of :meth:`restart`: afterwards connections are refused and the data folder is kept."""
        if self._process is None:
            raise LiveServerError("The server is not running.")
        if kill:
            self._process.kill()
        else:
            self._process.terminate()

    def create_key(self, scopes: Iterable[str] | None = None) -> str:
        """Make an API key and return it.

        :param scopes: what it may do, e.g. ``["workflow:list"]``; every scope when ``None``.
        """
        return self.owner.create_key(self.scopes if scopes is None else scopes)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document that the server publishes."""
        # From the file that it serves as it is: from below a hidden folder, as caches are, it answers 500 instead.
        return dict(yaml.safe_load(published_document(self._tree).read_text()))

    def _prepare(self) -> None:
        self._tree = install(self.generation, self._progress)
        self._port, self._broker_port = free_ports(2)
        self.base_url = f"http://127.0.0.1:{self._port}"
        self.api_url = f"{self.base_url}/api/v1"

    def _set_up(self) -> None:
        self.owner = Owner(self.base_url)
        self.scopes = self.owner.scopes()
        self.api_key = self.create_key()

    def _spawn(self) -> None:
        self._progress(f"starting server {self.version} at {self.base_url}")
        super()._spawn()

    def _command(self) -> Sequence[str]:
        return node_command(str(server_script(self._tree)), "start")

    def _environment(self) -> dict[str, str]:
        return node_environment() | {
            "HOME": str(self.folder),  # some of its caches ignore N8N_USER_FOLDER
            "TMPDIR": str(self.folder),
            "N8N_USER_FOLDER": str(self.folder),
            "N8N_PORT": str(self._port),
            # Moments without an offset mean this zone, but only once a workflow has run; by default it is not UTC.
            "GENERIC_TIMEZONE": "UTC",
            "N8N_LISTEN_ADDRESS": "127.0.0.1",
            "N8N_RUNNERS_BROKER_PORT": str(self._broker_port),
            "N8N_DIAGNOSTICS_ENABLED": "false",
            "N8N_VERSION_NOTIFICATIONS_ENABLED": "false",
            "N8N_TEMPLATES_ENABLED": "false",
            "N8N_PERSONALIZATION_ENABLED": "false",
            "N8N_SECURE_COOKIE": "false",
            **self._extra_environment,
        }

    def _serves(self) -> bool:
        return (
            self._answers("/healthz/readiness", 200)
            and self._answers("/rest/settings", 200)  # the older generation calls itself ready before this works
            and self._answers("/api/v1/workflows", 401)
        )

    def _answers(self, path: str, status: int, *, port: int | None = None) -> bool:
        try:
            answer = local_request("GET", f"http://127.0.0.1:{port or self._port}{path}", timeout=5)
        except requests.RequestException:
            return False
        return answer.status_code == status and "json" in answer.headers.get("content-type", "")
