"""What the page of a task shows of each attempt, what a rescheduled attempt needs to know of itself, and how it fails.

The next attempt begins without the XComs of the previous one, but with its state, which Airflow keeps from 3.3 on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowSkipException

from airflow_provider_service.client.errors import ServiceError, ServiceTaskKilledError

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.providers.common.compat.sdk import Context


log = logging.getLogger(__name__)

#: Key in the state of the task.
ATTEMPTS_KEY = "service_attempts"
#: Key of the XCom with the reason why the latest attempt has failed.
REASON_KEY = "service_failure"
#: Key of the XCom with what the list of executions shows of the execution, beside its link.
EXECUTION_KEY = "service_execution"
#: Maximum length of a reason, in characters.
MAX_REASON_CHARS = 1_000
#: Number of attempts that are kept: the latest ones.
MAX_ATTEMPTS = 50


def push_execution(context: Context, execution_id: str, **known: datetime | str | None) -> None:
    """Push what is known of the execution: ``started_at``, ``stopped_at`` and ``workflow_name``."""
    texts = {name: value if isinstance(value, str) else value.isoformat() for name, value in known.items() if value}
    context["ti"].xcom_push(key=EXECUTION_KEY, value={"execution_id": execution_id, **texts})


def keep(context: Context, name: Literal["execution", "reason"], text: str) -> None:
    """Keep a fact about the current attempt, if Airflow keeps the state of tasks. A failure to do so fails no task."""
    store = context.get("task_state_store")
    if store is None:
        return
    try:
        attempts, number = read_attempts(store.get(ATTEMPTS_KEY)), context["ti"].try_number
        if attempts.get(number, {}).get(name) == text:
            return
        attempts[number] = {**attempts.get(number, {}), name: text}
        latest: dict[str, Any] = {str(number): attempts[number] for number in sorted(attempts)[-MAX_ATTEMPTS:]}
        store.set(ATTEMPTS_KEY, latest)
    except Exception as error:  # noqa: BLE001 - no error of Airflow may undo what the task has done
        log.warning("The %s of this attempt will be missing on the pages of later ones: %s", name, error)


def kept(context: Context, name: Literal["execution", "reason"]) -> str | None:
    """Return a fact that the current attempt has kept, perhaps before it was rescheduled; None if it is not known."""
    store = context.get("task_state_store")
    if store is None:
        return None
    try:
        return read_attempts(store.get(ATTEMPTS_KEY)).get(context["ti"].try_number, {}).get(name)
    except Exception as error:  # noqa: BLE001 - no error of Airflow may fail a task that can go on
        log.warning("What this attempt has kept before cannot be read: %s", error)
        return None


@contextmanager
def failure_reported(context: Context) -> Iterator[None]:
    try:
        yield
    except (AirflowSkipException, ServiceTaskKilledError):  # whoever ended the task knows the reason
        raise
    except Exception as error:
        with suppress(Exception):  # the failure itself must be raised
            _report(context, error)
        raise


def _report(context: Context, error: Exception) -> None:
    from airflow.exceptions import AirflowRescheduleException
    from airflow.providers.common.compat.sdk import redact

    if isinstance(error, AirflowRescheduleException):  # the wait continues
        return
    # The text of a foreign error may contain data.
    is_ours = isinstance(error, (ServiceError, AirflowException))
    text = str(error) if is_ours else f"{type(error).__name__}, of which the log says more"
    reason = str(redact(text))[:MAX_REASON_CHARS]
    context["ti"].xcom_push(key=REASON_KEY, value=reason)
    keep(context, "reason", reason)


def read_attempts(stored: object) -> dict[int, dict[str, str]]:
    """Read the facts about each attempt, by its number. Anybody who may edit the task may have overwritten them."""
    attempts = {}
    for number, facts in stored.items() if isinstance(stored, Mapping) else ():
        if number.isdecimal() and len(number) < 10:
            facts = facts if isinstance(facts, dict) else {}
            attempts[int(number)] = {name: text for name, text in facts.items() if isinstance(text, str)}
    return attempts


@contextmanager
def fail_without_retry() -> Iterator[None]:
    """Turn errors that would recur into failures that Airflow does not retry."""
    try:
        yield
    except ServiceError as error:
        if error.final:
            raise AirflowFailException(str(error)) from error
        raise
