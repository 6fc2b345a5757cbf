"""Which attempts belong to one task run, and what an attempt leaves for the next."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.client.runs import RunKey

STATE_KEY = "service_execution"


class Attempt:
    """One attempt of a task run. A cleared task is another task run, unless it was cleared while it ran.

    :param context: of the task.
    """

    def __init__(self, context: Context) -> None:
        from airflow_provider_service.client.runs import CLOCK_SKEW, RunKey

        ti, run = context["ti"], context.get("dag_run")
        start = getattr(run, "start_date", None)
        # Clearing raises the highest number allowed, retrying does not.
        first = max(1, (ti.max_tries or 0) - (context["task"].retries or 0) + 1)
        # The start tells apart the deployments of Airflow that share the service.
        parts = (ti.dag_id, ti.run_id, ti.task_id, ti.map_index, first, start.isoformat() if start else None)
        self.key: RunKey = RunKey(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(parts)).hex, ti.try_number)
        self.is_first = ti.try_number <= first
        #: A moment before the first attempt began.
        self.since: datetime | None = start - CLOCK_SKEW if start else None
        # Airflow 3.3 and newer.
        self._store: Any = context.get("task_state_store")

    def note_call(self) -> None:
        """Note that this attempt is about to start an execution."""
        self._keep(None)

    def remember(self, execution_id: str) -> None:
        """Keep the execution where a later attempt finds it without a search."""
        self._keep(execution_id)

    def recalled(self) -> str | None:
        """The execution that an attempt of this task run has kept."""
        kept = self._kept()
        return kept.get("execution_id") if kept else None

    @property
    def may_have_started_unseen(self) -> bool:
        """Whether an earlier attempt may have started an execution without learning which."""
        if self._store is None:
            return not self.is_first
        kept = self._kept()
        return kept is not None and kept.get("execution_id") is None

    def _keep(self, execution_id: str | None) -> None:
        if self._store is not None:
            self._store.set(STATE_KEY, {"execution_id": execution_id, "key": self.key.key})

    def _kept(self) -> dict[str, Any] | None:
        kept = self._store.get(STATE_KEY) if self._store is not None else None
        return kept if isinstance(kept, dict) and kept.get("key") == self.key.key else None
