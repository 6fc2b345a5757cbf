"""Which attempts belong to one task run, and what an attempt leaves for the next."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.client.runs import RunKey

# Clocks of Airflow and the service may differ by so much.
CLOCK_SKEW = timedelta(minutes=10)
STATE_KEY = "service_execution"


def run_key(context: Context) -> RunKey:
    """The key of a task run: the same for all its attempts, another one after the task was cleared."""
    from airflow_provider_service.client.runs import RunKey

    ti = context["ti"]
    parts = (ti.dag_id, ti.run_id, ti.task_id, ti.map_index, first_attempt(context))
    return RunKey(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(parts)).hex, ti.try_number)


def first_attempt(context: Context) -> int:
    """Number of the first attempt since the task was last cleared: clearing raises the highest number allowed."""
    ti = context["ti"]
    return max(1, (ti.max_tries or 0) - (context["task"].retries or 0) + 1)


def began(context: Context) -> datetime | None:
    """A moment before the first attempt of this task run."""
    run = context.get("dag_run")
    start = getattr(run, "start_date", None)
    return start - CLOCK_SKEW if start else None


def remember(context: Context, execution_id: str, key: str) -> None:
    """Keep the execution where a later attempt finds it without a search, on Airflow 3.3 and newer."""
    store = context.get("task_state_store")
    if store is not None:
        store.set(STATE_KEY, {"execution_id": execution_id, "key": key})


def recalled(context: Context, key: str) -> str | None:
    """The execution that an attempt of this task run has kept."""
    store = context.get("task_state_store")
    kept = store.get(STATE_KEY) if store is not None else None
    return str(kept["execution_id"]) if isinstance(kept, dict) and kept.get("key") == key else None
