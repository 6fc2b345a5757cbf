"""Read a task instance from the database: its attempts, its connection, its execution, and the proof of that."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_service._airflow.attempts import (
    ATTEMPTS_KEY,
    MAX_ATTEMPTS,
    MAX_REASON_CHARS,
    REASON_KEY,
    read_attempts,
)
from airflow_provider_service._core.pages.proof import Evidence
from airflow_provider_service._core.pages.task_view import AttemptView, TaskView
from airflow_provider_service._core.runs.attempt import STATE_KEY, key_of
from airflow_provider_service.links._execution_address import ExecutionAddress, read_execution_url
from airflow_provider_service.links.service import (
    EXECUTION_PAGE,
    WORKFLOW_PAGE,
    ServiceExecutionLink,
    page_url,
)
from airflow_provider_service.plugins._database import xcom_text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

try:
    from airflow.models.task_state_store import TaskStateStoreModel
except ImportError:  # before Airflow 3.3
    TaskStateStoreModel = None  # type: ignore[assignment,misc,unused-ignore]

#: Number of tasks whose declared arguments are kept.
MAX_KNOWN = 1_000
_HAS_FAILED = ("failed", "up_for_retry")
_ARGUMENTS = ("service_conn_id", "workflow_id", "workflow_name", "execution_id")

_known: OrderedDict[tuple[Any, str], dict[str, Any]] = OrderedDict()


class Found(NamedTuple):
    """An attempt, the address of its execution from its link, and evidence that the execution is the task's own."""

    task: TaskView
    address: ExecutionAddress | None
    evidence: Evidence


def find(dag_id: str, run_id: str, task_id: str, map_index: int, attempt: int | None = None) -> Found | None:
    """Read a task instance; None if there is no such task instance, or no such attempt of it.

    :param attempt: number of the attempt to show; None for the latest.
    """
    key = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    with create_session(scoped=False) as session:
        return _find(session, key, attempt)


def _find(session: Session, key: dict[str, Any], number: int | None) -> Found | None:
    ti = session.scalar(select(TaskInstance).filter_by(**key))
    if ti is None:
        return None
    kept = read_attempts(_state(session, key, ATTEMPTS_KEY))
    facts = {**kept, ti.try_number: _pushed(session, key, _text(ti.state))}
    rows = [(ti.try_number, _text(ti.state), ti.start_date, ti.end_date), *_earlier(session, key, ti.try_number)]
    attempts = [_attempt(*row, facts.get(row[0], {})) for row in rows]
    shown = next((one for one in attempts if number in (None, one.number)), None)
    if shown is None:
        return None
    arguments, address = _arguments(session, ti, key), _address(facts.get(shown.number, {}))
    view = TaskView(
        **key,
        state=shown.state,
        is_ours="service_conn_id" in arguments or address is not None,
        service_conn_id=arguments.get("service_conn_id"),
        execution_id=shown.execution_id,
        execution_url=page_url(address.base_url, EXECUTION_PAGE, *address[1:]) if address else None,
        workflow_url=page_url(address.base_url, WORKFLOW_PAGE, address.workflow_id) if address else None,
        attempts=tuple(one for one in attempts if one.number),  # before the first attempt, there is none to show
        number=shown.number,
        reason=shown.reason,
    )
    saved = frozenset((one.execution_id, one.workflow_id) for one in map(_address, kept.values()) if one is not None)
    return Found(view, address, _evidence(session, ti, key, arguments, saved))


def _attempt(
    number: int, state: str | None, began: datetime | None, ended: datetime | None, facts: Mapping[str, str]
) -> AttemptView:
    address, reason = _address(facts), facts.get("reason")
    return AttemptView(
        number,
        state,
        began,
        ended,
        execution_id=address.execution_id if address else None,
        reason=reason[:MAX_REASON_CHARS] if reason else None,
    )


def _address(facts: Mapping[str, str]) -> ExecutionAddress | None:
    return read_execution_url(facts.get("execution"))


def _pushed(session: Session, key: dict[str, Any], state: str | None) -> dict[str, str]:
    """Read the XComs of the latest attempt; until it begins, they are still those of the previous one."""
    names = {"execution": ServiceExecutionLink().xcom_key}
    if state in _HAS_FAILED:
        names["reason"] = REASON_KEY
    pushed = {fact: _text_of_xcom(session, key, name) for fact, name in names.items()}
    return {fact: text for fact, text in pushed.items() if text is not None}


def _evidence(
    session: Session,
    ti: TaskInstance,
    key: dict[str, Any],
    arguments: dict[str, str | None],
    saved: frozenset[tuple[str, str]],
) -> Evidence:
    run_key = key_of(ti, session.scalar(select(DagRun).filter_by(dag_id=ti.dag_id, run_id=ti.run_id)))
    workflows = (arguments.get("workflow_id"), arguments.get("workflow_name"))
    return Evidence(
        run_key=run_key,
        execution_id=arguments.get("execution_id"),
        workflows=tuple(filter(None, workflows)),
        saved=saved | _saved(session, key, run_key.task),
    )


def _saved(session: Session, key: dict[str, Any], task: str) -> frozenset[tuple[str, str]]:
    """Read the execution and the workflow that the task has saved for its next attempt."""
    state = _state(session, key, STATE_KEY)
    if not isinstance(state, dict) or state.get("key") != task:
        return frozenset()
    return frozenset({(str(state.get("execution_id")), str(state.get("workflow_id")))})


def _state(session: Session, key: dict[str, Any], name: str) -> Any:
    """Read a value from the state of the task; None before Airflow 3.3."""
    if TaskStateStoreModel is None:
        return None
    found = session.scalar(select(TaskStateStoreModel.value).filter_by(**key, key=name))
    try:
        return json.loads(found or "null")
    except (ValueError, RecursionError):
        return None


def _text_of_xcom(session: Session, key: dict[str, Any], name: str) -> str | None:
    """Read a text that the latest attempt has pushed; None if there is no text."""
    return xcom_text(session.scalar(select(XComModel.value).filter_by(**key, key=name)))


def _earlier(session: Session, key: dict[str, Any], latest: int) -> list[tuple[int, str | None, Any, Any]]:
    """Read the number, state, start and end of the earlier attempts, the latest first."""
    found = session.execute(
        select(
            TaskInstanceHistory.try_number,
            TaskInstanceHistory.state,
            TaskInstanceHistory.start_date,
            TaskInstanceHistory.end_date,
        )
        .filter_by(**key)
        .where(TaskInstanceHistory.try_number != latest)
        .order_by(TaskInstanceHistory.try_number.desc())
        .limit(MAX_ATTEMPTS)
    )
    return [(number, _text(state), start, end) for number, state, start, end in found]


def _arguments(session: Session, ti: TaskInstance, key: dict[str, Any]) -> dict[str, str | None]:
    """Read the arguments that the operator takes; None for those whose value is unknown."""
    fields = session.scalar(select(RenderedTaskInstanceFields.rendered_fields).filter_by(**key))
    if fields is None:  # not begun yet, or so old that Airflow has deleted them
        fields = _declared_once(session, ti)
    return {name: _rendered(fields[name]) for name in _ARGUMENTS if name in fields}


def _rendered(value: Any) -> str | None:
    is_known = isinstance(value, (str, int)) and "{{" not in str(value)
    return str(value).strip() if is_known else None


def _declared_once(session: Session, ti: TaskInstance) -> dict[str, Any]:
    """Read the arguments as the DAG declares them, once for each version of the DAG."""
    if ti.dag_version_id is None:  # from before Airflow 3: it has the arguments of the DAG as it is now
        return _declared(session, ti)
    key = (ti.dag_version_id, ti.task_id)
    declared = _known.get(key)  # read once: another thread may remove it
    if declared is None:
        declared = _known[key] = _declared(session, ti)
        while len(_known) > MAX_KNOWN:
            _known.popitem(last=False)
    return declared


def _declared(session: Session, ti: TaskInstance) -> dict[str, Any]:
    from airflow.models.dagbag import DBDagBag

    run = session.scalar(select(DagRun).filter_by(dag_id=ti.dag_id, run_id=ti.run_id))
    dag = DBDagBag().get_dag_for_run(run, session=session) if run is not None else None
    task = dag.task_dict.get(ti.task_id) if dag is not None else None
    given = getattr(task, "partial_kwargs", None) or {}
    declared = {name: given.get(name, getattr(task, name, None)) for name in _ARGUMENTS}
    return {name: value for name, value in declared.items() if value is not None}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
