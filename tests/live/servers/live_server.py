"""A real server on loopback ports, with a data folder of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import requests
import yaml

from .errors import LiveServerError, tail
from .generation import GENERATIONS, NEWEST, Generation
from .guarded import GuardedProcess
from .install import Progress, install, published_document, server_script
from .node import node_command, node_environment
from .owner import Owner, local_request
from .polling import wait_until
from .ports import free_ports


class LiveServer:
    """Install (when needed), start, set up, restart and stop one real server.

    Use it as a context manager; between ``start`` and ``stop`` the attributes below are valid. When the test run dies
    without ``stop``, the process group still ends and the data folder goes.

    - ``base_url``, ``api_url``: without a trailing slash.
    - ``api_key``: holds every scope; ``key_header``: the header that carries it.
    - ``scopes``: every scope that this server knows, sorted.
    - ``generation``, ``version``, ``deployment``: what is running, and how.
    - ``data_folder``, ``log``: gone after ``stop``.
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
        self._extra_environment = dict(environment or {})
        self._ready_seconds = ready_seconds
        self._progress = progress
        self._process: GuardedProcess | None = None

    def start(self) -> None:
        """Start on free ports with a fresh data folder, wait until ready, set up the owner and a key with all scopes.

        :raises LiveServerError: it cannot be had; holds the end of the log.
        """
        self._tree = install(self.generation, self._progress)
        self.data_folder = Path(tempfile.mkdtemp(prefix="live-server-"))
        self.log = self.data_folder / "server.log"
        self._port, self._broker_port = free_ports(2)
        self.base_url = f"http://127.0.0.1:{self._port}"
        self.api_url = f"{self.base_url}/api/v1"
        try:
            self._launch()
            self.owner = Owner(self.base_url)
            self.scopes = self.owner.scopes()
            self.api_key = self.create_key()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the whole process group (TERM, then KILL) and remove the data folder. Safe to repeat."""
        if self._process is not None:
            self._process.end()
            self._process = None
        shutil.rmtree(self.data_folder, ignore_errors=True)

    def restart(self, *, kill: bool = True, environment: Mapping[str, str] | None = None) -> None:
        """Stop and start again with the same ports, data folder, owner and keys; return when it is ready.

        :param kill: with KILL, as in a power cut; else asked to finish first.
        :param environment: replaces the extra variables given at first; ``None`` keeps them.
        :raises LiveServerError: it did not come back; holds the end of the log.
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

    def log_tail(self, lines: int = 40) -> str:
        """The end of the server's log."""
        return tail(self.log, lines)

    def __enter__(self) -> LiveServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self) -> None:
        self._spawn()
        self.wait_until_ready()

    def _spawn(self) -> None:
        self._progress(f"starting server {self.version} at {self.base_url}")
        self._process = GuardedProcess(
            node_command(str(server_script(self._tree)), "start"),
            folder=self.data_folder,
            environment=self._environment(),
            log=self.log,
            scratch=self.data_folder,
        )

    def wait_until_ready(self) -> None:
        """Return when the server answers as it should.

        :raises LiveServerError: it ended, or took too long; holds the end of the log.
        """
        try:
            wait_until(self._ready, seconds=self._ready_seconds, what=f"server {self.version}", interval=0.2)
        except TimeoutError as error:
            raise LiveServerError(f"{error} End of its log:\n{self.log_tail()}") from None

    def _environment(self) -> dict[str, str]:
        return node_environment() | {
            "HOME": str(self.data_folder),  # some of its caches ignore N8N_USER_FOLDER
            "TMPDIR": str(self.data_folder),
            "N8N_USER_FOLDER": str(self.data_folder),
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

    def _ready(self) -> bool:
        assert self._process is not None
        if self._process.exit_code is not None:
            code = self._process.exit_code
            raise LiveServerError(f"Server {self.version} ended with code {code}. End of its log:\n{self.log_tail()}")
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
