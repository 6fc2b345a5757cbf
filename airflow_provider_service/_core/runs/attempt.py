"""Which attempts belong to one task run, and what an attempt saves for the next."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

from airflow_provider_service._airflow import settings

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service._core.runs.searching import EarlierRuns, RunKey

STATE_KEY = "service_execution"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SavedRun(NamedTuple):
    """The run that an attempt saves with Airflow for the next.

    :param attempt: its number.
    :param execution_id: the execution that it waits for; None if it was about to start one.
    :param workflow_id: the execution's workflow.
    :param after: number of the newest execution or retry when it was about to start one; 0 if there was none or that
        was not looked up.
    :param retried: the failed execution, if it was about to have the service retry one.
    :param first: the first attempt since another run was requested.
    :param order: distinguishes the request for that run from later ones.
    """

    attempt: int
    execution_id: str | None = None
    workflow_id: str = ""
    after: int = 0
    retried: str | None = None
    first: int = 1
    order: str = ""


class Attempt:
    """One attempt to get the one execution of a key.

    :param key: the key that its calls carry. Its attempt is 0 if the attempts are not counted.
    :param since: a date and time by our clock before the first attempt began; None if that is unknown.
    :param store: Airflow's store for the state of the task (3.3 and newer); None if there is none.
    :param state_key: key in that store.
    """

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
        """The attempt of a task. Clearing the task requests another execution, unless the last one is still active.

        :param context: context of the task.
        :param names: distinguish several runs of the same task.
        """
        from airflow_provider_service._core.runs.searching import CLOCK_SKEW

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
        """An attempt that Airflow does not count: calls with the same names in a deployment of Airflow belong together.

        :param since: a date and time by our clock; calls before it do not count.
        """
        from airflow_provider_service._core.runs.searching import UNCOUNTED, RunKey

        attempt = cls(RunKey(task=_digest(settings.deployment(), *names), attempt=UNCOUNTED), since)
        attempt.is_repeated = True
        attempt.is_counted = False
        return attempt

    @classmethod
    def only(cls) -> Attempt:
        """The only attempt that will ever be made."""
        from airflow_provider_service._core.runs.searching import RunKey

        return cls(RunKey(task=uuid.uuid4().hex, attempt=1), None)

    @property
    def is_first(self) -> bool:
        """Whether no attempt came before."""
        return self.key.attempt == 1 and not self.is_repeated

    def follow(self, runs: EarlierRuns) -> None:
        """If Airflow does not count the attempts, number this one after those whose executions were found."""
        if not self.key.is_numbered:
            self.key = self.key._replace(attempt=1 + max((run.attempt for run in runs.found), default=0))

    def save_call(self, after: int = 0, retried: str | None = None) -> None:
        """Save that this attempt is about to start an execution.

        :param after: number of the newest execution so far, if that was looked up.
        :param retried: the failed execution that the service is to retry; None to run the workflow.
        """
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
        """Save the execution, so that a later attempt finds it without a search."""
        self._write(SavedRun(self.key.attempt, execution_id, workflow_id, first=self.key.first, order=self._order))

    def saved_run(self) -> SavedRun | None:
        """What an attempt of this task run has saved."""
        kept = self._store.get(self._state_key) if self._store is not None else None
        if not isinstance(kept, dict) or kept.get("key") != self.key.task:
            return None
        return SavedRun(**{name: kept[name] for name in SavedRun._fields if name in kept})

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
        # Airflow shows a task's state only to its latest attempt, and the saved run may be of an
        # earlier one until it saves its own.
        return self._store is not None and (saved is None or saved.attempt > self.key.attempt)

    def _write(self, run: SavedRun) -> None:
        if self._store is not None:
            self._store.set(self._state_key, {"key": self.key.task, **run._asdict()})


def key_of(ti: Any, run: Any, *names: str) -> RunKey:
    """Return the key that the calls of an attempt carry, whether or not there were earlier attempts.

    :param ti: the task instance.
    :param run: its DAG run, as the task or Airflow's database knows it; None if it is unknown.
    :param names: distinguish several runs of the same task.
    """
    from airflow_provider_service._core.runs.searching import RunKey

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
