"""Everything that the pages and the doctor read of Airflow's tables, which are no API: each version may move them.

Only this module knows the tables. What it cannot read it names in ``lacks``, instead of failing with the rest.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow import __version__ as airflow_version
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS
from airflow.utils.session import create_session
from sqlalchemy import and_, func, select, tuple_
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_service._airflow.attempts import (
    ATTEMPTS_KEY,
    EXECUTION_KEY,
    MAX_ATTEMPTS,
    MAX_REASON_CHARS,
    REASON_KEY,
    read_attempts,
)
from airflow_provider_service._airflow.connection import KEY_HEADERS
from airflow_provider_service._core.pages.checkup import Waits
from airflow_provider_service._core.pages.executions import TaskExecution, Workflow
from airflow_provider_service._core.pages.task_view import AttemptView, Evidence, TaskView
from airflow_provider_service._core.runs.attempt import STATE_KEY, key_of
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import (
    EXECUTION_PAGE,
    WORKFLOW_PAGE,
    ExecutionAddress,
    ServiceExecutionLink,
    page_url,
    read_execution_url,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.orm import Session

log = logging.getLogger(__name__)


def _model(module: str, *names: str) -> Any:
    """Return the first of these models that this version of Airflow has; None if it has none."""
    with suppress(ImportError):
        found = import_module(f"airflow.{module}")
        return next((getattr(found, name) for name in names if hasattr(found, name)), None)
    return None


Connection = _model("models.connection", "Connection")
DagRun = _model("models.dagrun", "DagRun")
Job = _model("jobs.job", "Job")
RenderedFields = _model("models.renderedtifields", "RenderedTaskInstanceFields")
TaskInstance = _model("models.taskinstance", "TaskInstance")
TaskInstanceHistory = _model("models.taskinstancehistory", "TaskInstanceHistory")  # until Airflow 3.3
TaskState = _model("models.task_state_store", "TaskStateStoreModel")  # from Airflow 3.3 on
Trigger = _model("models.trigger", "Trigger")
XComModel = _model("models.xcom", "XComModel", "BaseXCom")  # the latter on Airflow 2.11

_KEY = ("dag_id", "task_id", "run_id", "map_index")
#: From Airflow 3.4 on, each attempt is a task instance of its own, and XComs and rendered fields belong to attempts.
_ATTEMPTS_ARE_INSTANCES = hasattr(TaskInstance, "working_set")
# The columns of XComs and rendered fields that name their owner, with the columns of the task instance that they name.
_OWNER = {"task_instance_id": "id"} if _ATTEMPTS_ARE_INSTANCES else dict(zip(_KEY, _KEY, strict=True))
_TRIGGERS = "airflow_provider_service.triggers."
#: Maximum number of connections to list.
MAX_CONNECTIONS = 200
#: Maximum number of executions to read, and of the latest DAG runs whose tasks are searched for them.
MAX_EXECUTIONS, MAX_DAG_RUNS = 2_000, 20_000
#: Maximum number of tasks in whose arguments the names of workflows are searched for.
MAX_NAMES = 200
#: Longer texts are no XCom of this package.
MAX_XCOM_CHARS = 10_000
#: How long ago a task may have received the id of one of the latest runs.
LOOK_BACK = timedelta(days=7)
#: Number of tasks whose declared arguments are kept.
MAX_KNOWN = 1_000
_HAS_FAILED = ("failed", "up_for_retry")
_ARGUMENTS = ("service_conn_id", "workflow_id", "workflow_name", "execution_id")

_known: OrderedDict[tuple[Any, str], dict[str, Any]] = OrderedDict()


@dataclass(frozen=True)
class Executions:
    known: list[TaskExecution]
    is_complete: bool  # whether there are no earlier ones
    lacks: tuple[str, ...] = ()
    number: int = field(init=False, compare=False, default_factory=count().__next__)  # of what is known

    @cached_property
    def dags(self) -> frozenset[str]:
        return frozenset(execution.dag_id for execution in self.known)

    @cached_property
    def open_in(self) -> Mapping[str, set[str]]:
        """The DAGs whose executions may be open, by servers, of which some have none."""
        dags: dict[str, set[str]] = {}
        for execution in self.known:
            of_server = dags.setdefault(execution.address.base_url, set())
            if execution.may_be_open:
                of_server.add(execution.dag_id)
        return dags


class Found(NamedTuple):
    task: TaskView
    address: ExecutionAddress | None
    evidence: Evidence | None


def _session() -> AbstractContextManager[Session]:
    # Airflow 2.11 has only sessions that a thread shares.
    return create_session(scoped=False) if AIRFLOW_V_3_0_PLUS else create_session()


@contextmanager
def _noting(lacks: list[str], what: str, session: Session) -> Iterator[None]:
    """Note what a page does not show because something cannot be read, instead of failing."""
    try:
        yield
    except (SQLAlchemyError, ImportError, AttributeError, TypeError) as error:  # no such table, column or model
        log.debug("%s", what, exc_info=True)
        session.rollback()  # PostgreSQL refuses all other queries of a transaction after one that failed
        where = f"this version of Airflow ({airflow_version}) keeps them in another place"
        lacks.append(f"{what}: {where}, or its database does not answer ({type(error).__name__}).")


def _owned(model: Any, ti: Any) -> list[ColumnElement[bool]]:
    """The conditions by which rows of a model belong to a task instance, or to the model of task instances."""
    return [getattr(model, column) == getattr(ti, name) for column, name in _OWNER.items()]


def connections(readable: Callable[[list[str]], Collection[str]], lacks: list[str]) -> list[str]:
    """List the ids of the connections to the service in the database, of those that ``readable`` selects."""
    ids: list[str] = []
    with _session() as session, _noting(lacks, "Connections are not shown", session):
        ours = select(Connection.conn_id).where(Connection.conn_type.in_(KEY_HEADERS)).order_by(Connection.conn_id)
        ids = [str(id_) for id_ in session.scalars(ours)]
    allowed = readable(ids) if ids else ()
    return [id_ for id_ in ids if id_ in allowed][:MAX_CONNECTIONS]


def waits(lacks: list[str]) -> list[Waits]:
    """Count the waiting triggers by kind and host, for all connections: a trigger's arguments are encrypted."""
    rows: Iterable[Any] = ()
    with _session() as session, _noting(lacks, "Waits in triggerers are not shown", session):
        columns = (Trigger.classpath, Job.hostname, Job.latest_heartbeat)
        rows = session.execute(
            select(*columns, func.count())
            .outerjoin(Job, Job.id == Trigger.triggerer_id)
            .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
            .group_by(*columns, Trigger.triggerer_id)
            .order_by(*columns)
        ).all()
    return [Waits(str(path).rpartition(".")[2], int(number), host, seen_at) for path, host, seen_at, number in rows]


def executions(dag_id: str | None = None, run_id: str | None = None) -> Executions:
    """Read the executions of the latest DAG runs, by the links of the tasks, which are XComs.

    Their primary key begins with the id of the DAG run, and ids below a limit are excluded: as the database grows, no
    more rows are read.
    """
    lacks: list[str] = []
    known: list[TaskExecution] = []
    is_complete = False
    with _session() as session:
        with _noting(lacks, "Executions are not shown", session):
            runs = _narrowed(select(DagRun.id), DagRun, dag_id, run_id).order_by(DagRun.id.desc())
            oldest = session.scalar(runs.offset(MAX_DAG_RUNS - 1).limit(1))
            links = _pushed_by_tasks(ServiceExecutionLink().xcom_key, dag_id, run_id, oldest or 0)
            rows = session.execute(links.limit(MAX_EXECUTIONS + 1)).all()
            is_complete = oldest is None and len(rows) <= MAX_EXECUTIONS
            known = list(_read(rows[:MAX_EXECUTIONS]))
        if known:
            with _noting(lacks, "The executions' own times are not shown", session):
                facts = _pushed_by_tasks(EXECUTION_KEY, dag_id, run_id, min(row.dag_run_id for row in rows))
                values = {tuple(row[:4]): _xcom(row.value) for row in session.execute(facts.limit(MAX_EXECUTIONS + 1))}
                known = [execution.told(values.get(_key(execution))) for execution in known]
    known.sort(key=lambda execution: execution.began_at, reverse=True)
    return Executions(known, is_complete, tuple(lacks))


def _pushed_by_tasks(key: str, dag_id: str | None, run_id: str | None, oldest: int) -> Select[Any]:
    columns = (*(getattr(XComModel, name) for name in _KEY), XComModel.dag_run_id, XComModel.timestamp, XComModel.value)
    pushed = select(*columns, TaskInstance.state).join(TaskInstance, and_(*_owned(XComModel, TaskInstance)))
    return (
        _narrowed(pushed, XComModel, dag_id, run_id)
        .where(XComModel.key == key, XComModel.dag_run_id >= oldest)
        .order_by(XComModel.dag_run_id.desc(), XComModel.task_id.desc(), XComModel.map_index.desc())
    )


def _narrowed(query: Select[Any], model: Any, dag_id: str | None, run_id: str | None) -> Select[Any]:
    columns = ((model.dag_id, dag_id), (model.run_id, run_id))
    return query.where(*(column == value for column, value in columns if value is not None))


def _read(rows: Iterable[Any]) -> Iterator[TaskExecution]:
    for row in rows:
        address = read_execution_url(_xcom(row.value))
        if address is not None:
            key = (row.dag_id, row.task_id, row.map_index, row.run_id)
            yield TaskExecution(*key, _text(row.state), row.timestamp, address)


def _xcom(stored: object) -> Any:
    """Airflow's own function would import the class that an XCom names, and raise what that raises."""
    text = stored.decode(errors="replace") if isinstance(stored, bytes) else stored  # bytes before Airflow 3
    # JSON, and not a text that Airflow stores as it is
    if isinstance(text, str) and text.startswith(('"', "{")) and len(text) <= MAX_XCOM_CHARS:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def latest_runs(known: Iterable[TaskExecution], base_url: str) -> list[TaskExecution]:
    since = clock().utcnow() - LOOK_BACK
    runs = [run for run in known if run.address.base_url == base_url and run.known_at > since]
    return sorted(runs, key=lambda run: run.known_at, reverse=True)


def workflow_names(executions: Iterable[TaskExecution], lacks: list[str]) -> dict[Workflow, str]:
    """Find the newest known name of each workflow: what a task has told, or else the argument of one that runs it."""
    executions = list(executions)
    names: dict[Workflow, str] = {}
    for execution in executions:
        if execution.workflow_name:
            names.setdefault(execution.workflow, execution.workflow_name)
    nameless = (execution for execution in executions if execution.workflow not in names)
    for execution, name in _rendered("workflow_name", nameless, lacks, "Some names of workflows are not shown"):
        names.setdefault(execution.workflow, name)
    return names


def connections_of(executions: Iterable[TaskExecution], lacks: list[str]) -> set[str]:
    """Find the ids of the connections that tasks have used, as far as Airflow has kept their arguments."""
    return {name for _, name in _rendered("service_conn_id", executions, lacks, "Some links are not shown")}


def _rendered(
    argument: str, executions: Iterable[TaskExecution], lacks: list[str], lacking: str
) -> list[tuple[TaskExecution, str]]:
    """Read an argument of the latest instance of each task, since only some kinds of tasks name the workflow."""
    latest: dict[tuple[Workflow, str, str], TaskExecution] = {}
    for execution in executions:
        if len(latest) < MAX_NAMES:
            latest.setdefault((execution.workflow, execution.dag_id, execution.task_id), execution)
    if not latest:
        return []
    arguments: dict[tuple[Any, ...], Any] = {}
    with _session() as session, _noting(lacks, lacking, session):
        key = [getattr(TaskInstance, name) for name in _KEY]
        keys = [_key(execution) for execution in latest.values()]
        owner = and_(*_owned(RenderedFields, TaskInstance))
        fields = select(*key, RenderedFields.rendered_fields).join(TaskInstance, owner)
        arguments = {tuple(row[:4]): row[4] for row in session.execute(fields.where(tuple_(*key).in_(keys)))}
    rendered = ((execution, arguments.get(_key(execution))) for execution in latest.values())
    values = ((execution, fields.get(argument)) for execution, fields in rendered if isinstance(fields, dict))
    return [(execution, value) for execution, value in values if isinstance(value, str) and value]


def _key(execution: TaskExecution) -> tuple[Any, ...]:
    return tuple(getattr(execution, name) for name in _KEY)


def find(dag_id: str, run_id: str, task_id: str, map_index: int, attempt: int | None = None) -> Found | None:
    """Read a task instance; None if there is no such task instance, or no such attempt of it."""
    key = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    with _session() as session:
        return _find(session, key, attempt)


def _find(session: Session, key: dict[str, Any], number: int | None) -> Found | None:
    lacks: list[str] = []
    ti = None
    with _noting(lacks, "The task and its attempts are not shown", session):
        ti = session.scalar(select(TaskInstance).filter_by(**key))
    if ti is None:
        return Found(TaskView(**key, state=None, is_ours=False, lacks=tuple(lacks)), None, None) if lacks else None
    kept: dict[int, dict[str, str]] = {}
    with _noting(lacks, "Executions of earlier attempts are not shown", session):
        kept = read_attempts(_state(session, key, ATTEMPTS_KEY))
    facts = dict(kept)
    with _noting(lacks, "The XComs of the task are not shown", session):
        facts[ti.try_number] = _pushed(session, ti)
    rows = [(ti.try_number, _text(ti.state), ti.start_date, ti.end_date)]
    with _noting(lacks, "Earlier attempts are not shown", session):
        rows += _earlier(session, key, ti.try_number)
    attempts = [_attempt(*row, facts.get(row[0], {})) for row in rows]
    shown = next((attempt for attempt in attempts if number in (None, attempt.number)), None)
    if shown is None:
        return None
    arguments = _arguments(session, ti, lacks)
    address = read_execution_url(facts.get(shown.number, {}).get("execution"))
    earlier = [read_execution_url(attempt.get("execution")) for attempt in kept.values()]
    saved = frozenset((known.execution_id, known.workflow_id) for known in earlier if known is not None)
    evidence = _evidence(session, ti, key, arguments, saved, lacks)
    view = TaskView(
        **key,
        state=shown.state,
        is_ours="service_conn_id" in arguments or address is not None,
        service_conn_id=arguments.get("service_conn_id"),
        execution_id=shown.execution_id,
        execution_url=page_url(address.base_url, EXECUTION_PAGE, *address[1:]) if address else None,
        workflow_url=page_url(address.base_url, WORKFLOW_PAGE, address.workflow_id) if address else None,
        attempts=tuple(attempt for attempt in attempts if attempt.number),  # none before the first has begun
        number=shown.number,
        reason=shown.reason,
        lacks=tuple(lacks),
    )
    return Found(view, address, evidence)


def _attempt(
    number: int, state: str | None, began: datetime | None, ended: datetime | None, facts: Mapping[str, str]
) -> AttemptView:
    address, reason = read_execution_url(facts.get("execution")), facts.get("reason")
    return AttemptView(
        number,
        state,
        began,
        ended,
        execution_id=address.execution_id if address else None,
        reason=reason[:MAX_REASON_CHARS] if reason else None,
    )


def _pushed(session: Session, ti: Any) -> dict[str, str]:
    """Read the XComs of the latest attempt; until it begins, they may still be those of the previous one."""
    names = {"execution": ServiceExecutionLink().xcom_key}
    if _text(ti.state) in _HAS_FAILED:
        names["reason"] = REASON_KEY
    mine = select(XComModel.value).where(*_owned(XComModel, ti))
    pushed = {fact: _xcom(session.scalar(mine.where(XComModel.key == name))) for fact, name in names.items()}
    return {fact: text for fact, text in pushed.items() if isinstance(text, str)}


def _evidence(
    session: Session,
    ti: Any,
    key: dict[str, Any],
    arguments: dict[str, str | None],
    saved: frozenset[tuple[str, str]],
    lacks: list[str],
) -> Evidence:
    run = None
    with _noting(lacks, "What proves that an execution is the task's own is not known", session):
        run = _run_of(session, ti)
        state = _state(session, key, STATE_KEY)
        if isinstance(state, dict) and state.get("key") == key_of(ti, run).task:
            saved |= {(str(state.get("execution_id")), str(state.get("workflow_id")))}
    workflows = tuple(filter(None, (arguments.get("workflow_id"), arguments.get("workflow_name"))))
    return Evidence(key_of(ti, run), arguments.get("execution_id"), workflows, saved)


def _run_of(session: Session, ti: Any) -> Any:
    return session.scalar(select(DagRun).filter_by(dag_id=ti.dag_id, run_id=ti.run_id))


def _state(session: Session, key: dict[str, Any], name: str) -> Any:
    """Read a value from the state of the task; None before Airflow 3.3."""
    if TaskState is None:
        return None
    *task, (_, map_index) = key.items()
    index = "map_index" if hasattr(TaskState, "map_index") else "region_index"  # the latter from Airflow 3.4 on
    stored = session.scalar(select(TaskState.value).filter_by(**dict(task), **{index: map_index}, key=name))
    try:
        return json.loads(stored or "null")
    except (ValueError, RecursionError):
        return None


def _earlier(session: Session, key: dict[str, Any], latest: int) -> list[tuple[int, str | None, Any, Any]]:
    """Read the number, state, start and end of the earlier attempts, the latest first."""
    model = TaskInstance if _ATTEMPTS_ARE_INSTANCES else TaskInstanceHistory
    rows = session.execute(
        select(model.try_number, model.state, model.start_date, model.end_date)
        .filter_by(**key)
        .where(model.try_number != latest)
        .order_by(model.try_number.desc())
        .limit(MAX_ATTEMPTS)
        .execution_options(include_all_attempts=True)  # of Airflow 3.4
    )
    return [(number, _text(state), start, end) for number, state, start, end in rows]


def _arguments(session: Session, ti: Any, lacks: list[str]) -> dict[str, str | None]:
    """Read the arguments that the operator takes; None for those whose value is unknown."""
    fields = None
    with _noting(lacks, "The rendered arguments of the task are not known", session):
        fields = session.scalar(select(RenderedFields.rendered_fields).where(*_owned(RenderedFields, ti)))
    if fields is None:  # not begun yet, or so old that Airflow has deleted them
        fields = {}
        with _noting(lacks, "The arguments of the task are not known", session):
            fields = _declared_once(session, ti)
    arguments = {name: fields[name] for name in _ARGUMENTS if name in fields}
    return {
        name: str(value).strip() if isinstance(value, (str, int)) and "{{" not in str(value) else None
        for name, value in arguments.items()
    }


def _declared_once(session: Session, ti: Any) -> dict[str, Any]:
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


def _declared(session: Session, ti: Any) -> dict[str, Any]:
    from airflow.models.dagbag import DBDagBag

    run = _run_of(session, ti)
    dag = DBDagBag().get_dag_for_run(run, session=session) if run is not None else None
    task = dag.task_dict.get(ti.task_id) if dag is not None else None
    of_mapped = getattr(task, "partial_kwargs", None) or {}
    declared = {name: of_mapped.get(name, getattr(task, name, None)) for name in _ARGUMENTS}
    return {name: value for name, value in declared.items() if value is not None}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
