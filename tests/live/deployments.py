"""How the real server is deployed for the tests: as one process with SQLite, or in queue mode with a worker."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import Any, ClassVar

from tests.databases import Postgres, Redis
from tests.polling import wait_until

from .servers import LiveServer, LiveServerError
from .servers.errors import tail
from .servers.guarded import GuardedProcess
from .servers.install import server_script
from .servers.node import node_command
from .servers.ports import free_ports

_DATABASE = "service"
_LOCK_SECONDS = 5


class QueueServer(LiveServer):
    """PostgreSQL, Redis, a main process, and a worker that runs the executions.

    What halts, resumes and restarts the server does so with the main process and the worker; the databases stay.
    """

    deployment: ClassVar[str] = "queue"

    def __init__(self, *args: Any, **options: Any) -> None:
        """Choose what to run; takes what :class:`LiveServer` does. A concurrency limit is that of the worker."""
        super().__init__(*args, **options)
        self._databases = ExitStack()
        self._worker: GuardedProcess | None = None
        self._worker_was_started = False

    def start(self) -> None:
        """Start the databases, the main process and the worker.

        :raises LiveServerError: one of them cannot be started; contains the end of its log.
        """
        with ExitStack() as databases:
            self._databases = databases
            self._postgres = databases.enter_context(Postgres(progress=self._progress))
            self._redis = databases.enter_context(Redis(progress=self._progress))
            self._postgres.create_database(_DATABASE)
            self._encryption_key = secrets.token_hex(16)
            self._worker_broker_port, self._worker_port = free_ports(2)
            super().start()
            self._databases = databases.pop_all()

    def stop(self) -> None:
        """End everything, and remove all data. Safe to repeat."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None
        super().stop()
        self._databases.close()

    def halt(self, *, kill: bool = True) -> None:
        """End the main process and the worker."""
        super().halt(kill=kill)
        self.halt_worker(kill=kill)

    def halt_worker(self, *, kill: bool = True) -> None:
        """End the worker alone, so that nobody runs what is queued. Safe to repeat."""
        if self._worker is not None:
            self._worker.kill() if kill else self._worker.terminate()
            self._worker = None

    def resume_worker(self) -> None:
        """Start a worker again if there is none, and return when it takes what is queued."""
        if self._worker is None:
            self._spawn_worker()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Return when the main process answers as it should, and the worker takes what is queued.

        :raises LiveServerError: one of them ended, or took too long; contains the end of the log.
        """
        super().wait_until_ready()
        if (
            not self._worker_was_started
        ):  # the first one: it would create the tables at the same time as the main process
            self._spawn_worker()
        try:
            wait_until(self._worker_is_ready, seconds=self._ready_seconds, what="the worker", interval=0.2)
        except TimeoutError as error:
            raise LiveServerError(f"{error} End of its log:\n{self.log_tail()}") from None

    def log_tail(self, lines: int = 40) -> str:
        """The end of the logs of the main process and of the worker."""
        return f"{super().log_tail(lines)}\nWorker:\n{tail(self._worker_log, lines)}"

    @property
    def _worker_log(self) -> Any:
        return self.folder / "worker.log"

    def _spawn(self) -> None:
        super()._spawn()
        if self._worker_was_started:
            self._spawn_worker()

    def _spawn_worker(self) -> None:
        folder = self.folder / "worker"
        folder.mkdir(exist_ok=True)
        self._worker = GuardedProcess(
            node_command(str(server_script(self._tree)), "worker", "--concurrency=10"),
            folder=folder,
            environment=self._environment()
            | {
                "N8N_USER_FOLDER": str(folder),
                "N8N_RUNNERS_BROKER_PORT": str(self._worker_broker_port),
                "QUEUE_HEALTH_CHECK_ACTIVE": "true",
                "QUEUE_HEALTH_CHECK_PORT": str(self._worker_port),
                "N8N_WORKER_SERVER_ADDRESS": "127.0.0.1",
            },
            log=self._worker_log,
            scratch=folder,
        )
        self._worker_was_started = True

    def _worker_is_ready(self) -> bool:
        if self._worker is None or self._worker.exit_code is not None:
            raise LiveServerError(f"The worker has ended. End of its log:\n{tail(self._worker_log)}")
        return self._answers("/healthz/readiness", 200, port=self._worker_port)

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {
            "DB_TYPE": "postgresdb",
            "DB_POSTGRESDB_HOST": self._postgres.host,
            "DB_POSTGRESDB_PORT": str(self._postgres.port),
            "DB_POSTGRESDB_USER": self._postgres.user,
            "DB_POSTGRESDB_PASSWORD": self._postgres.password,
            "DB_POSTGRESDB_DATABASE": _DATABASE,
            "EXECUTIONS_MODE": "queue",
            "QUEUE_BULL_REDIS_HOST": self._redis.host,
            "QUEUE_BULL_REDIS_PORT": str(self._redis.port),
            # A worker that is gone is noticed when its lock on an execution has run out.
            "QUEUE_WORKER_LOCK_DURATION": str(_LOCK_SECONDS * 1000),
            "QUEUE_WORKER_LOCK_RENEW_TIME": str(_LOCK_SECONDS * 500),
            "QUEUE_WORKER_STALLED_INTERVAL": str(_LOCK_SECONDS * 1000),
            "N8N_ENCRYPTION_KEY": self._encryption_key,
            "OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS": "true",
        }


DEPLOYMENTS: dict[str, type[LiveServer]] = {kind.deployment: kind for kind in (LiveServer, QueueServer)}
