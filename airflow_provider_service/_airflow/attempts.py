"""What an attempt of a task leaves for its page. The next attempt begins without its XComs, but not without its state,
which Airflow keeps from 3.3 on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowException, AirflowSkipException

from airflow_provider_service.client.errors import ServiceError, ServiceTaskKilledError

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)

#: Key in the state of the task.
ATTEMPTS_KEY = "service_attempts"
#: Key of the XCom that says why the latest attempt has failed.
REASON_KEY = "service_failure"
#: How many characters a reason may have.
MAX_REASON_CHARS = 1_000
#: How many attempts are kept: the latest ones.
MAX_ATTEMPTS = 50


def keep(context: Context, name: Literal["execution", "reason"], text: str) -> None:
    """Keep a fact of the present attempt, unless Airflow keeps no state of tasks. A failure to keep it fails no task.

    :param name: name of the fact: the page of the attempt's execution, or the reason why the attempt has failed.
    """
    store = context.get("task_state_store")
    if store is None:
        return
    try:
        attempts, number = read_attempts(store.get(ATTEMPTS_KEY)), context["ti"].try_number
        if attempts.get(number, {}).get(name) == text:
            return
        attempts[number] = {**attempts.get(number, {}), name: text}
        latest: dict[str, Any] = {str(one): attempts[one] for one in sorted(attempts)[-MAX_ATTEMPTS:]}
        store.set(ATTEMPTS_KEY, latest)
    except Exception as error:  # noqa: BLE001 - whatever ends Airflow's answer, what the task has done counts
        log.warning("The %s of this attempt will be missing on the pages of later ones: %s", name, error)


@contextmanager
def failure_reported(context: Context) -> Iterator[None]:
    """Leave the reason why an attempt fails where its page finds it."""
    try:
        yield
    except (AirflowSkipException, ServiceTaskKilledError):  # whoever has ended the task knows why
        raise
    except Exception as error:
        with suppress(Exception):  # what is raised must be the failure itself
            _report(context, error)
        raise


def _report(context: Context, error: Exception) -> None:
    from airflow.exceptions import AirflowRescheduleException

    if isinstance(error, AirflowRescheduleException):  # the wait goes on
        return
    reason = _reason_of(error)
    context["ti"].xcom_push(key=REASON_KEY, value=reason)
    keep(context, "reason", reason)


def _reason_of(error: Exception) -> str:
    """What to report of a failure; the text of an error that is not ours may contain data."""
    from airflow.providers.common.compat.sdk import redact

    is_ours = isinstance(error, (ServiceError, AirflowException))
    text = str(error) if is_ours else f"{type(error).__name__}, of which the log says more"
    return str(redact(text))[:MAX_REASON_CHARS]


def read_attempts(kept: object) -> dict[int, dict[str, str]]:
    """What was kept of each attempt, by its number. Anybody who may edit the task may have overwritten it."""
    numbered = kept.items() if isinstance(kept, Mapping) else ()
    return {int(number): _texts(facts) for number, facts in numbered if number.isdecimal() and len(number) < 10}


def _texts(facts: Any) -> dict[str, str]:
    return {name: text for name, text in facts.items() if isinstance(text, str)} if isinstance(facts, dict) else {}
