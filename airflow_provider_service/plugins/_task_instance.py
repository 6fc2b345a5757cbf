"""What the database knows of a task instance: attempts, connection, execution, and what proves that it is its own."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_service._core.pages.proof import Evidence
from airflow_provider_service._core.pages.task_view import AttemptView, TaskView
from airflow_provider_service._core.runs.attempt import STATE_KEY, key_of
from airflow_provider_service.links.service import (
    EXECUTION_PAGE,
    WORKFLOW_PAGE,
    ExecutionAddress,
    ServiceExecutionLink,
    page_url,
    read_execution_url,
)

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

try:
    from airflow.models.task_state_store import TaskStateStoreModel
except ImportError:  # before Airflow 3.3
    TaskStateStoreModel = None  # type: ignore[assignment,misc,unused-ignore]

#: Attempts that are shown, the latest of them.
MAX_ATTEMPTS = 50
#: Tasks whose declared arguments are remembered.
MAX_KNOWN = 1_000
#: A longer text is no address.
MAX_ADDRESS_CHARS = 2_000
_ARGUMENTS = ("service_conn_id", "workflow_id", "workflow_name", "execution_id")

_known: OrderedDict[tuple[Any, str], dict[str, Any]] = OrderedDict()


class Found(NamedTuple):
    """A task instance, where its execution is according to its link, and what proves which execution is its own."""

    task: TaskView
    address: ExecutionAddress | None
    evidence: Evidence


def find(dag_id: str, run_id: str, task_id: str, map_index: int) -> Found | None:
    """Read a task instance; None if there is no such task instance."""
    with create_session(scoped=False) as session:
        return _find(session, {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index})


def _find(session: Session, key: dict[str, Any]) -> Found | None:
    ti = session.scalar(select(TaskInstance).filter_by(**key))
    if ti is None:
        return None
    address = read_execution_url(_link(session, key))
    arguments = _arguments(session, ti, key)
    execution_id = address.execution_id if address else None
    latest = AttemptView(ti.try_number, _text(ti.state), ti.start_date, ti.end_date, execution_id)
    view = TaskView(
        **key,
        state=_text(ti.state),
        is_ours="service_conn_id" in arguments or address is not None,
        service_conn_id=arguments.get("service_conn_id"),
        execution_id=execution_id,
        execution_url=page_url(address.base_url, EXECUTION_PAGE, *address[1:]) if address else None,
        workflow_url=page_url(address.base_url, WORKFLOW_PAGE, address.workflow_id) if address else None,
        # Before the first attempt there is none to show.
        attempts=(*([latest] if ti.try_number else []), *_earlier(session, key, ti.try_number)),
    )
    return Found(view, address, _evidence(session, ti, key, arguments))


def _evidence(session: Session, ti: TaskInstance, key: dict[str, Any], arguments: dict[str, str | None]) -> Evidence:
    run_key = key_of(ti, session.scalar(select(DagRun).filter_by(dag_id=ti.dag_id, run_id=ti.run_id)))
    workflows = (arguments.get("workflow_id"), arguments.get("workflow_name"))
    return Evidence(
        run_key=run_key,
        execution_id=arguments.get("execution_id"),
        workflows=tuple(filter(None, workflows)),
        saved=_saved(session, key, run_key.task),
    )


def _saved(session: Session, key: dict[str, Any], task: str) -> tuple[str, str] | None:
    """The execution and the workflow that the task has saved in its state."""
    if TaskStateStoreModel is None:
        return None
    found = session.scalar(select(TaskStateStoreModel.value).filter_by(**key, key=STATE_KEY))
    try:
        state = json.loads(found or "null")
    except ValueError:
        return None
    if not isinstance(state, dict) or state.get("key") != task:
        return None
    return str(state.get("execution_id")), str(state.get("workflow_id"))


def _link(session: Session, key: dict[str, Any]) -> str | None:
    """The address that the task has pushed for its button, unless somebody else has written it."""
    row = session.scalar(select(XComModel).filter_by(**key, key=ServiceExecutionLink().xcom_key))
    value = None if row is None else XComModel.deserialize_value(row)
    return value if isinstance(value, str) and len(value) <= MAX_ADDRESS_CHARS else None


def _earlier(session: Session, key: dict[str, Any], latest: int) -> list[AttemptView]:
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
    return [AttemptView(number, _text(state), start, end) for number, state, start, end in found]


def _arguments(session: Session, ti: TaskInstance, key: dict[str, Any]) -> dict[str, str | None]:
    """The arguments of the operator, as far as it takes it; None for what is not known."""
    fields = session.scalar(select(RenderedTaskInstanceFields.rendered_fields).filter_by(**key))
    if fields is None:  # not begun yet, or so long ago that Airflow has dropped them
        fields = _declared_once(session, ti)
    return {name: _rendered(fields[name]) for name in _ARGUMENTS if name in fields}


def _rendered(value: Any) -> str | None:
    is_known = isinstance(value, (str, int)) and "{{" not in str(value)
    return str(value).strip() if is_known else None


def _declared_once(session: Session, ti: TaskInstance) -> dict[str, Any]:
    """The arguments as the DAG declares them, which are read once for a version of the DAG."""
    key = (ti.dag_version_id, ti.task_id)
    if key not in _known:
        while len(_known) >= MAX_KNOWN:
            _known.popitem(last=False)
        _known[key] = _declared(session, ti)
    return _known[key]


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
