"""Which attempts belong to one task run, the key that their calls carry, and what an attempt saves for the next.

The service keeps the key with the execution that a call starts, in the call's header or among the fields of a form. So
an execution shows for ever which attempt of which task run has started it, even if that attempt was killed before it
learned the id. Where Airflow stores the state of a task (3.3 and newer), an attempt also saves there that it is about
to make a call, and then the id: the next one needs no search.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

from airflow_provider_service._airflow import settings
from airflow_provider_service.client._constraints import ENDED_STATUSES, FAILED_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.providers.common.compat.sdk import Context

STATE_KEY = "service_execution"
#: Difference between the clocks of Airflow and of the service that may remain after correction by the measured offset.
CLOCK_SKEW = timedelta(minutes=10)
# The number of an attempt until a search has found the earlier ones, if Airflow does not count them.
UNCOUNTED = 0
_HEADER = re.compile(r"([^.]+)\.([^.]*)\.([^.]*)\.([0-9]{1,9})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunKey(NamedTuple):
    #: Identifies the DAG, the run, the task and the map index.
    task: str
    attempt: int
    #: The first attempt since another run was requested, for example by clearing the task. Calls do not carry it.
    first: int = 1
    #: Identifies the time at which the DAG run began, if known; clearing a finished DAG run changes it.
    start: str = ""
    #: Identifies the deployment of Airflow.
    deployment: str = ""
    #: Whether the DAG run may have begun before, with another ``start``. Calls do not carry it.
    was_cleared: bool = False

    @property
    def header(self) -> str:
        return f"{self.task}.{self.start}.{self.deployment}.{self.attempt}"

    @classmethod
    def read(cls, header: object) -> RunKey | None:
        """Read a header's value; None for one that no task has sent."""
        parts = _HEADER.fullmatch(header) if isinstance(header, str) else None
        return cls(parts[1], int(parts[4]), start=parts[2], deployment=parts[3]) if parts else None

    def attempt_of(self, sent: RunKey | None) -> int | None:
        """Return the attempt of this task run that sent a key, 0 for one before the DAG run was cleared, or None."""
        if sent is None or sent.task != self.task:
            return None
        # That time identifies the DAG run, even if the configuration of Airflow changes between two attempts. The
        # deployment decides only if the time has changed.
        if sent.start == self.start:
            return sent.attempt
        return 0 if self.was_cleared and sent.deployment == self.deployment else None

    @property
    def is_numbered(self) -> bool:
        return self.attempt != UNCOUNTED

    def follows(self, made_by: int, status: str | None) -> bool:
        """Whether no execution of this task run came between one that was found and this attempt."""
        if self.is_numbered:
            return made_by >= self.attempt - 1
        # That is known only of one that has not failed. None does not show how the run ended.
        return status not in (None, *FAILED_STATUSES)

    def may_resume(self, made_by: int, status: str) -> bool:
        if made_by < self.first:
            return status not in ENDED_STATUSES
        return made_by == self.attempt or status not in FAILED_STATUSES


class SavedRun(NamedTuple):
    """The run that an attempt saves with Airflow for the next. Airflow stores its fields by these names."""

    attempt: int
    #: None if the attempt was about to start an execution.
    execution_id: str | None = None
    workflow_id: str = ""
    #: Number of the newest execution or retry before the call; 0 if there was none or that was not looked up.
    after: int = 0
    #: The failed execution, if the attempt was about to have the service retry one.
    retried: str | None = None
    first: int = 1
    #: Distinguishes the request for that run from later ones.
    order: str = ""


class Attempt:
    """One attempt to get the one execution of a key. By our clock, the first one began after ``since``, if known."""

    def __init__(self, key: RunKey, since: datetime | None, *, store: Any = None, state_key: str = STATE_KEY) -> None:
        self.key, self.since = key, since
        #: Whether calls of the same attempt may have come before.
        self.is_repeated = False
        #: Whether the attempts are counted.
        self.is_counted = True
        #: Whether it may have started an execution.
        self.has_called = False
        self._store, self._state_key, self._order = store, state_key, ""
        self._before: Any = None

    @classmethod
    def of_task(cls, context: Context, *names: str) -> Attempt:
        """Clearing the task requests another execution, unless the last is active. Names tell runs of a task apart."""
        ti, run = context["ti"], context.get("dag_run")
        start = getattr(run, "start_date", None)
        # Clearing raises max_tries to the number of attempts so far plus all retries.
        first = max(1, (ti.max_tries or 0) - (context["task"].retries or 0) + 1)
        # The result exceeds this attempt's number only if the DAG's retries were lowered in the meantime.
        key = key_of(ti, run, *names)._replace(first=first if first <= ti.try_number else 1)
        attempt = cls(
            key,
            start - CLOCK_SKEW if start else None,
            store=context.get("task_state_store"),
            state_key=f"{STATE_KEY}_{key.task}" if names else STATE_KEY,
        )
        attempt._order = f"{key.start}.{ti.max_tries}"
        saved = attempt.saved_run() if ti.try_number > 1 else None
        if saved is not None and saved.order == attempt._order:  # the task's retries may have changed since
            attempt.key = key._replace(first=saved.first)
        return attempt

    @classmethod
    def uncounted(cls, *names: str, since: datetime) -> Attempt:
        """An attempt that Airflow does not count: one of the calls since then with the same names in a deployment."""
        attempt = cls(RunKey(task=_digest(settings.deployment(), *names), attempt=UNCOUNTED), since)
        attempt.is_repeated = True
        attempt.is_counted = False
        return attempt

    @classmethod
    def only(cls) -> Attempt:
        """The only attempt that will ever be made."""
        return cls(RunKey(task=uuid.uuid4().hex, attempt=1), None)

    @property
    def is_first(self) -> bool:
        return self.key.attempt == 1 and not self.is_repeated

    def follow(self, earlier: Iterable[int]) -> None:
        """If Airflow does not count the attempts, number this one after those whose executions were found."""
        if not self.key.is_numbered:
            self.key = self.key._replace(attempt=1 + max(earlier, default=0))

    def save_call(self, after: int = 0, retried: str | None = None) -> None:
        self.has_called = True
        if self._store is not None:
            self._before = self._store.get(self._state_key)
            self._write(SavedRun(self.key.attempt, None, "", after, retried, self.key.first, self._order))

    def discard_call(self) -> None:
        """Restore what was saved before the call, because the call provably started nothing."""
        self.has_called = False
        if self._store is None:
            return
        if self._before is None:
            self._store.delete(self._state_key)
        else:
            self._store.set(self._state_key, self._before)

    def save(self, execution_id: str, workflow_id: str) -> None:
        self._write(SavedRun(self.key.attempt, execution_id, workflow_id, first=self.key.first, order=self._order))

    def saved_run(self) -> SavedRun | None:
        state = self._store.get(self._state_key) if self._store is not None else None
        if not isinstance(state, dict) or state.get("key") != self.key.task:
            return None
        return SavedRun(**{name: state[name] for name in SavedRun._fields if name in state})

    @property
    def may_have_started_unseen(self) -> bool:
        """Whether an earlier attempt may have started an execution without learning its id."""
        if self._store is None:
            return self.is_repeated or self.key.attempt > self.key.first
        saved = self.saved_run()
        return saved is not None and saved.execution_id is None and saved.attempt >= self.key.first

    @property
    def is_given_up(self) -> bool:
        """Whether Airflow has begun a later attempt; False if that is unknown."""
        saved = self.saved_run()
        # Airflow shows a task's state only to its latest attempt, and the saved run may be of an earlier one until it
        # saves its own.
        return self._store is not None and (saved is None or saved.attempt > self.key.attempt)

    def _write(self, run: SavedRun) -> None:
        if self._store is not None:
            self._store.set(self._state_key, {"key": self.key.task, **run._asdict()})


def key_of(ti: Any, run: Any, *names: str) -> RunKey:
    start = getattr(run, "start_date", None)
    # Deployments of Airflow that share the service may run the same DAGs. Airflow 2 shows a task the id of its DAG run
    # in the database, and Airflow 3 the time at which the run was due.
    number = None if AIRFLOW_V_3_0_PLUS else getattr(run, "id", None)
    deployment = _digest(settings.deployment(), str(number or getattr(run, "run_after", None)))
    return RunKey(
        task=_digest(ti.dag_id, ti.run_id, ti.task_id, ti.map_index, *names),
        attempt=ti.try_number,
        start=str((start - _EPOCH) // timedelta(microseconds=1)) if start else "",
        deployment=deployment[:12],
        # Airflow forgets when a finished DAG run began once it is cleared.
        was_cleared=run is not None and getattr(run, "clear_number", None) != 0,
    )


def _digest(*parts: Any) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(parts)).hex
