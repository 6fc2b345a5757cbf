"""Airflow's REST API, as far as the tests need it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from tests.polling import wait_until

RUN_ENDED = ("success", "failed")
# On a busy machine, Airflow answers now and then that its database had no connection left, or closes an idle connection
# just when the next request is sent.
_RETRY = Retry(
    connect=0,
    read=2,
    status=5,
    status_forcelist=(500, 503),
    allowed_methods={"GET"},
    backoff_factor=1,
    raise_on_status=False,
)


class Task(NamedTuple):
    """A task instance."""

    task_id: str
    map_index: int
    state: str | None
    tries: int


class AirflowApi:
    """A logged-in user.

    :param base_url: of the API server.
    """

    root, health_path = "/api/v2", "/monitor/health"

    def __init__(self, base_url: str, user: str, password: str) -> None:
        self.base_url, self._user, self._password = base_url, user, password
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.mount("http://", HTTPAdapter(max_retries=_RETRY))

    def is_up(self) -> bool:
        """Whether the API server and its database answer."""
        try:
            answer = self._session.get(f"{self.base_url}{self.root}{self.health_path}", timeout=10)
        except requests.RequestException:
            return False
        return answer.ok and answer.json()["metadatabase"]["status"] == "healthy"

    def health(self) -> dict[str, str | None]:
        """The state of each kind of process, "healthy" or not."""
        return {name: part["status"] for name, part in self.call("GET", self.health_path).items()}

    def log_in(self) -> str:
        """Get a token, which is returned as well."""
        body = {"username": self._user, "password": self._password}
        answer = self._session.post(f"{self.base_url}/auth/token", json=body, timeout=30)
        answer.raise_for_status()
        token = str(answer.json()["access_token"])
        self._session.headers["Authorization"] = f"Bearer {token}"
        return token

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Call an endpoint of the API.

        :raises requests.HTTPError: refused; contains what Airflow says.
        """
        answer = self._request(method, f"{self.root}{path}", json=body, params=query)
        return answer.json() if answer.content else None

    def page(self, path: str) -> requests.Response:
        """Get what the browser of the user gets.

        :raises requests.HTTPError: refused; contains what Airflow says.
        """
        return self._request("GET", path)

    def _request(self, method: str, path: str, **more: Any) -> requests.Response:
        answer = self._session.request(method, f"{self.base_url}{path}", timeout=60, **more)
        if not answer.ok:
            raise requests.HTTPError(f"{method} {path}: {answer.status_code} {answer.text[:500]}", response=answer)
        return answer

    # ------------------------------------------------------------ DAGs and runs

    def dag_ids(self) -> set[str]:
        """The DAGs that Airflow has read."""
        return {dag["dag_id"] for dag in self.call("GET", "/dags", limit=200, exclude_stale=True)["dags"]}

    def import_errors(self) -> list[str]:
        """The errors in DAG files."""
        return [one["stack_trace"] for one in self.call("GET", "/importErrors")["import_errors"]]

    def unpause(self, dag_id: str) -> None:
        """Let Airflow run a DAG."""
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": False})

    def pause(self, dag_id: str) -> None:
        """Let Airflow start no more runs of a DAG."""
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": True})

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None, *, logical_date: bool = True) -> str:
        """Start a run and return its id.

        :param logical_date: whether the run has one.
        """
        date = datetime.now(UTC).isoformat() if logical_date else None
        run = self.call("POST", f"/dags/{dag_id}/dagRuns", {"conf": conf or {}, "logical_date": date})
        return str(run["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The runs of a DAG."""
        return list(self.call("GET", f"/dags/{dag_id}/dagRuns", limit=100)["dag_runs"])

    def run_state(self, dag_id: str, run_id: str) -> str:
        """The state of a run."""
        return str(self.call("GET", self._run(dag_id, run_id))["state"])

    def wait_for_run(self, dag_id: str, run_id: str, *, seconds: float) -> str:
        """Wait until a run has ended, and return its state."""

        def ended() -> str | None:
            state = self.run_state(dag_id, run_id)
            return state if state in RUN_ENDED else None

        try:
            return wait_until(ended, seconds=seconds, what=f"the end of {dag_id}", interval=1)
        except TimeoutError as error:
            raise TimeoutError(f"{error} Its tasks: {self.tasks(dag_id, run_id)}") from None

    def tasks(self, dag_id: str, run_id: str) -> list[Task]:
        """The task instances of a run."""
        found = self.call("GET", f"{self._run(dag_id, run_id)}/taskInstances", limit=1000)["task_instances"]
        return [Task(one["task_id"], one["map_index"], one["state"], one["try_number"]) for one in found]

    def task_states(self, dag_id: str, run_id: str) -> dict[str, set[str | None]]:
        """The states of each task, over its mapped instances."""
        states: dict[str, set[str | None]] = {}
        for one in self.tasks(dag_id, run_id):
            states.setdefault(one.task_id, set()).add(one.state)
        return states

    def wait_for_task(
        self, dag_id: str, run_id: str, task_id: str, states: Iterable[str], *, seconds: float = 120
    ) -> Task:
        """Wait until a task is in one of some states, and return it."""
        wanted = set(states)

        def there() -> Task | None:
            for one in self.tasks(dag_id, run_id):
                if one.task_id == task_id and one.state in wanted:
                    return one
            return None

        what = f"{dag_id}.{task_id} to be {' or '.join(sorted(wanted))}"
        try:
            return wait_until(there, seconds=seconds, what=what, interval=0.5)
        except TimeoutError as error:
            raise TimeoutError(f"{error} Its tasks: {self.tasks(dag_id, run_id)}") from None

    def wait_for_later_attempt(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Wait until an attempt of a task that is not its first is in a state, and its execution is known."""

        def there() -> bool:
            found = {one.task_id: one for one in self.tasks(dag_id, run_id)}[task_id]
            return found.state == state and found.tries > 1

        wait_until(there, seconds=240, what=f"a later attempt of {task_id}", interval=0.5)
        # XComs are cleared between attempts.
        self.wait_for_xcom(dag_id, run_id, task_id, "execution_id")

    def wait_for_trigger(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Wait until a triggerer runs the trigger of a task's first attempt.

        If a deferred task is marked before that, Airflow drops its trigger without notifying it.
        """
        began = f"trigger {dag_id}/{run_id}/{task_id}"
        what = f"a triggerer to take {dag_id}.{task_id}"
        wait_until(lambda: began in self.log(dag_id, run_id, task_id), seconds=120, what=what, interval=0.5)

    def mark(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Mark a task as a user does in the UI."""
        self.call("PATCH", f"{self._run(dag_id, run_id)}/taskInstances/{task_id}", {"new_state": state})

    def clear(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Clear a task as a user does in the UI, together with the state of its run."""
        body = {"dry_run": False, "dag_run_id": run_id, "task_ids": [task_id], "only_failed": False}
        self.call("POST", f"/dags/{dag_id}/clearTaskInstances", body)

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        """A value that a task has pushed, or None."""
        path = f"{self._run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/{key}"
        try:
            return self.call("GET", path, map_index=map_index, deserialize=True)["value"]
        except requests.HTTPError as error:
            if _is_missing(error):
                return None
            raise

    def wait_for_xcom(self, dag_id: str, run_id: str, task_id: str, key: str, *, seconds: float = 60) -> Any:
        """Wait until a task has pushed a value, and return it."""
        what = f"{key} of {dag_id}.{task_id}"
        return wait_until(lambda: self.xcom(dag_id, run_id, task_id, key), seconds=seconds, what=what, interval=0.5)

    def log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1, map_index: int = -1) -> str:
        """The log of an attempt, as the UI gets it."""
        path = f"{self._run(dag_id, run_id)}/taskInstances/{task_id}/logs/{attempt}"
        return str(self.call("GET", path, full_content=True, map_index=map_index)["content"])

    def asset_events(self) -> list[dict[str, Any]]:
        """All events of assets, oldest first."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.call("GET", "/assets/events", limit=500, offset=len(found), order_by="timestamp")[
                "asset_events"
            ]
            found += page
            if not page:
                return found

    # ------------------------------------------------------------ connections and pools

    def set_pool(self, pool: dict[str, Any]) -> None:
        """Create a pool, or replace it."""
        action = {"action": "create", "entities": [pool], "action_on_existence": "overwrite"}
        self.call("PATCH", "/pools", {"actions": [action]})

    def set_connection(self, connection: dict[str, Any]) -> None:
        """Create a connection, or replace it."""
        self.delete_connection(connection["connection_id"])
        self.call("POST", "/connections", connection)

    def change_connection(self, connection: dict[str, Any]) -> None:
        """Change a connection that is there, as a user does in the UI."""
        self.call("PATCH", f"/connections/{quote(connection['connection_id'], safe='')}", connection)

    def delete_connection(self, connection_id: str) -> None:
        """Delete a connection, if it is there."""
        try:
            self.call("DELETE", f"/connections/{quote(connection_id, safe='')}")
        except requests.HTTPError as error:
            if not _is_missing(error):
                raise

    @staticmethod
    def _run(dag_id: str, run_id: str) -> str:
        return f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _is_missing(error: requests.HTTPError) -> bool:
    return error.response is not None and error.response.status_code == 404
