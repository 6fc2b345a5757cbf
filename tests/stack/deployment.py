"""A deployment of Airflow on loopback ports: its databases and all its processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from tests.databases import Postgres, Redis
from tests.live.servers import LiveServerError
from tests.live.servers.ports import free_ports
from tests.polling import wait_until

from .airflow_api import AirflowApi
from .processes import Component, leftovers
from .settings import Settings

READY_SECONDS = 240
MIGRATION_SECONDS = 300


class Deployment:
    """API server, scheduler, DAG processor, two triggerers and a Celery worker; use it as a context manager.

    - ``api``: Airflow's REST API.
    - ``settings``: keys and addresses.
    - ``database``: the server that holds the metadata.

    :param folder: DAG files, logs and the output of the processes; kept at the end. That of the run before is renamed.
    :param dags: folders whose files become the DAGs folder.
    :param extra: further variables of every process.
    :param concurrency: tasks that the worker runs at a time.
    """

    def __init__(
        self,
        folder: Path,
        dags: list[Path],
        *,
        extra: Mapping[str, str] | None = None,
        concurrency: int = 4,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.folder, self._dags, self._progress = folder, dags, progress
        self._extra, self._concurrency = dict(extra or {}), concurrency
        self.database, self._broker = Postgres(progress=progress), Redis(progress=progress)
        self.components: dict[str, Component] = {}

    def start(self) -> None:
        """Start everything and return when all DAGs exist.

        :raises LiveServerError: a part of it does not start; contains the end of its output.
        """
        try:
            self._start()
        except TimeoutError as error:
            self.stop()
            raise LiveServerError(f"{error} See {self.folder}/output") from None
        except BaseException:
            self.stop()
            raise

    def _keep_the_folder_before(self) -> None:
        """Logs tell why a test failed at first that passes when it runs again."""
        before = self.folder.with_name(f"{self.folder.name}-before")
        shutil.rmtree(before, ignore_errors=True)
        if self.folder.exists():
            self.folder.rename(before)

    def _start(self) -> None:
        self._keep_the_folder_before()
        self._progress("starting PostgreSQL and Redis")
        self.database.start()
        self._broker.start()
        [port] = free_ports(1)
        address = self.database.create_database("airflow")
        self.settings = Settings(self.folder, port, address, self._broker.url(), self._extra)
        self._fill_folder()
        self._progress("creating the metadata database")
        self._migrate()
        self.api = AirflowApi(self.settings.base_url, self.settings.user, self.settings.password)
        self.components = self._make_components()
        self._progress(f"starting Airflow at {self.settings.base_url}, output in {self.folder}/output")
        self._start_components()
        wait_until(self._has_dags, seconds=READY_SECONDS, what="all DAGs", interval=1)
        self._progress("Airflow is ready")

    def restart(self, changes: Mapping[str, str], *, killed: str | None = None) -> None:
        """End all of Airflow's processes, and start them with changed variables, which stay so.

        :param killed: the component that is killed instead.
        """
        if killed:
            self[killed].kill()
        self._end()
        self.settings.extra.update(changes)
        self._start_components()

    def _end(self) -> None:
        for one in self.components.values():
            one.request_end()
        for one in self.components.values():
            one.end()

    def _start_components(self) -> None:
        self._started = time.time()
        for one in self.components.values():
            one.environment = self.settings.environment()
            one.start()
        wait_until(self._is_up, seconds=READY_SECONDS, what="the API server", interval=0.5)
        self.api.log_in()
        wait_until(self._is_healthy, seconds=READY_SECONDS, what="scheduler, DAG processor and triggerers", interval=1)

    def stop(self) -> None:
        """End all processes; the folder stays. Safe to repeat."""
        self._end()
        for process in leftovers(self.folder):
            process.kill()
        self._broker.stop()
        self.database.stop()

    def __enter__(self) -> Deployment:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __getitem__(self, name: str) -> Component:
        return self.components[name]

    def lines(self, statement: str) -> list[str]:
        """The rows that a statement gives in the metadata database, a line each."""
        return [line for line in self.database.run_sql(statement, database="airflow").split("\n") if line]

    def query(self, statement: str) -> list[list[str]]:
        """Rows of the metadata database, as texts that hold no ``|``."""
        return [line.split("|") for line in self.lines(statement)]

    def memory(self) -> int:
        """Bytes of memory that all processes use."""
        return sum(one.usage()[1] for one in self.components.values())

    @contextmanager
    def api_server_below(self, path: str, extra: Mapping[str, str]) -> Iterator[str]:
        """A second API server, which knows itself to be below a path, as behind a proxy; yields its address.

        :param extra: further variables of it.
        """
        [port] = free_ports(1)
        base_url = f"http://127.0.0.1:{port}{path}"
        server = Component(
            "api-server-below-a-path",
            [*AIRFLOW, "api-server", "--host", "127.0.0.1", "--port", str(port)],
            folder=self.folder,
            environment={**self.settings.environment(), "AIRFLOW__API__BASE_URL": base_url, **extra},
        )
        server.start()
        try:
            api = AirflowApi(base_url, self.settings.user, self.settings.password)
            wait_until(api.is_up, seconds=READY_SECONDS, what="the API server below a path", interval=0.5)
            yield base_url
        finally:
            server.end()

    def airflow(self, *arguments: str, timeout: float = MIGRATION_SECONDS) -> str:
        """Run a command of Airflow and return its output.

        :raises LiveServerError: it failed; contains the end of its output.
        """
        done = subprocess.run(
            [*AIRFLOW, *arguments],
            env=self.settings.environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode:
            raise LiveServerError(f"airflow {' '.join(arguments)} failed:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout

    def _fill_folder(self) -> None:
        for name in ("dags", "logs", "output"):
            (self.folder / name).mkdir(parents=True)
        for source in self._dags:
            shutil.copytree(
                source, self.folder / "dags", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
            )
        self.settings.write_password()

    def _migrate(self) -> None:
        self.airflow("db", "migrate")

    def _make_components(self) -> dict[str, Component]:
        environment = self.settings.environment()
        concurrency = ["--concurrency", str(self._concurrency)]
        commands = {
            "api-server": ["api-server", "--host", "127.0.0.1", "--port", str(self.settings.port)],
            "scheduler": ["scheduler", "--skip-serve-logs"],
            "dag-processor": ["dag-processor"],
            "triggerer-1": ["triggerer", "--skip-serve-logs"],
            "triggerer-2": ["triggerer", "--skip-serve-logs"],
            "worker": ["celery", "worker", "--skip-serve-logs", "--without-gossip", "--without-mingle", *concurrency],
        }
        return {
            name: Component(name, [*AIRFLOW, *command], folder=self.folder, environment=environment)
            for name, command in commands.items()
        }

    def _is_up(self) -> bool:
        self._check()
        return self.api.is_up()

    def _is_healthy(self) -> bool:
        self._check()
        health = self.api.health()
        wanted = ("scheduler", "dag_processor", "triggerer")
        # Those that were killed count as running for ever.
        jobs = self.query(
            "SELECT count(*) FROM job WHERE job_type = 'TriggererJob' AND state = 'running'"
            f" AND start_date > to_timestamp({self._started})"
        )
        return all(health[name] == "healthy" for name in wanted) and int(jobs[0][0]) == 2

    def _has_dags(self) -> bool:
        self._check()
        if errors := self.api.import_errors():
            raise LiveServerError("DAG files cannot be imported:\n" + "\n".join(errors))
        return len(self.api.dag_ids()) >= len(list((self.folder / "dags").glob("*.py")))

    def _check(self) -> None:
        for one in self.components.values():
            one.check()


# Not the script beside Python: its first line names the environment by a path that may be too long for the system.
AIRFLOW = [sys.executable, "-P", "-m", "airflow"]
