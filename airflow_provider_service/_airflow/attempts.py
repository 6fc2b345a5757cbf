"""What Airflow 3.3 and newer keep of each attempt of a task for its page; the next attempt begins without its XComs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

#: Key in the state of the task.
ATTEMPTS_KEY = "service_attempts"
#: Attempts that are kept, the latest of them.
MAX_ATTEMPTS = 50


def keep(context: Context, name: Literal["execution"], text: str) -> None:
    """Keep a fact of the present attempt, unless Airflow keeps no state of tasks.

    :param name: of the fact: the page of the attempt's execution.
    """
    store = context.get("task_state_store")
    if store is None:
        return
    attempts, number = read_attempts(store.get(ATTEMPTS_KEY)), context["ti"].try_number
    if attempts.get(number, {}).get(name) == text:
        return
    attempts[number] = {**attempts.get(number, {}), name: text}
    latest: dict[str, Any] = {str(one): attempts[one] for one in sorted(attempts)[-MAX_ATTEMPTS:]}
    store.set(ATTEMPTS_KEY, latest)


def read_attempts(kept: object) -> dict[int, dict[str, str]]:
    """What was kept of each attempt, by its number. Whoever may edit the task may have written something else."""
    numbered = kept.items() if isinstance(kept, Mapping) else ()
    return {int(number): _texts(facts) for number, facts in numbered if number.isdecimal() and len(number) < 10}


def _texts(facts: Any) -> dict[str, str]:
    return {name: text for name, text in facts.items() if isinstance(text, str)} if isinstance(facts, dict) else {}
