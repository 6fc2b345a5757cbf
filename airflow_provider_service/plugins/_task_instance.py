"""What Airflow's database knows of a task instance: its attempts, its connection, and the execution it waits for."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_service.links import ServiceExecutionLink, ServiceWorkflowLink, read_execution_url
from airflow_provider_service.pages.task_view import AttemptView, TaskView

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from airflow_provider_service.links import ExecutionAddress

#: Attempts that are shown, the latest of them.
MAX_ATTEMPTS = 50
#: Tasks whose declared arguments are remembered.
MAX_KNOWN = 1_000
_FIELD = "service_conn_id"
_EXECUTION, _WORKFLOW = ServiceExecutionLink().xcom_key, ServiceWorkflowLink().xcom_key

_known: OrderedDict[tuple[Any, str], dict[str, Any]] = OrderedDict()


def find(dag_id: str, run_id: str, task_id: str, map_index: int) -> tuple[TaskView, ExecutionAddress | None] | None:
    """A task instance, and where its execution is; None if there is no such task instance."""
    with create_session(scoped=False) as session:
        return _find(session, {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index})


def _find(session: Session, key: dict[str, Any]) -> tuple[TaskView, ExecutionAddress | None] | None:
    ti = session.scalar(select(TaskInstance).filter_by(**key))
    if ti is None:
        return None
    links = _links(session, key)
    address = read_execution_url(links.get(_EXECUTION))
    service_conn_id, is_ours = _connection(session, ti, key)
    execution_id = address.execution_id if address else None
    latest = AttemptView(ti.try_number, _text(ti.state), ti.start_date, ti.end_date, execution_id)
    view = TaskView(
        **key,
        state=_text(ti.state),
        is_ours=is_ours or address is not None,
        service_conn_id=service_conn_id,
        execution_id=execution_id,
        execution_url=links.get(_EXECUTION) if address else None,
        workflow_url=links.get(_WORKFLOW),
        # Before the first attempt there is none to show.
        attempts=[*([latest] if ti.try_number else []), *_earlier(session, key, ti.try_number)],
    )
    return view, address


def _links(session: Session, key: dict[str, Any]) -> dict[str, str]:
    """The addresses that the task has pushed for its buttons."""
    rows = session.scalars(select(XComModel).filter_by(**key).where(XComModel.key.in_((_EXECUTION, _WORKFLOW))))
    values = {row.key: XComModel.deserialize_value(row) for row in rows}
    return {name: value for name, value in values.items() if isinstance(value, str)}


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


def _connection(session: Session, ti: TaskInstance, key: dict[str, Any]) -> tuple[str | None, bool]:
    """The task's connection, and whether its operator takes one."""
    fields = session.scalar(select(RenderedTaskInstanceFields.rendered_fields).filter_by(**key))
    if fields is None:  # not begun yet, or so long ago that Airflow has dropped them
        fields = _declared_once(session, ti)
    value = fields.get(_FIELD)
    is_known = isinstance(value, str) and "{{" not in value
    return (value if is_known else None), _FIELD in fields


def _declared_once(session: Session, ti: TaskInstance) -> dict[str, Any]:
    """The argument as the DAG declares it, which is read once for a version of the DAG."""
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
    arguments = getattr(task, "partial_kwargs", None) or {}
    value = arguments.get(_FIELD, getattr(task, _FIELD, None))
    return {} if value is None else {_FIELD: value}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
