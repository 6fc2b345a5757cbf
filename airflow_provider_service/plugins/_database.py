"""Read from Airflow's database about connections to the service, waits in triggerers, and executions."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.jobs.job import Job
from airflow.models.connection import Connection
from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS
from airflow.utils.session import create_session
from sqlalchemy import and_, func, select, tuple_

from airflow_provider_service._airflow.connection import KEY_HEADERS
from airflow_provider_service._core.pages.connection_view import Waits
from airflow_provider_service._core.pages.executions import TaskExecution, Workflow
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links._execution_address import read_execution_url
from airflow_provider_service.links.service import ServiceExecutionLink

if TYPE_CHECKING:
    from sqlalchemy import Select
    from sqlalchemy.orm import Session

try:
    from airflow.models.xcom import XComModel
except ImportError:  # Airflow 2.11
    from airflow.models.xcom import BaseXCom as XComModel  # type: ignore[attr-defined,no-redef,unused-ignore]

_TRIGGERS = "airflow_provider_service.triggers."
#: Maximum number of connections to list.
MAX_CONNECTIONS = 200
#: Maximum number of executions to read, and of the latest DAG runs whose tasks are searched for them.
MAX_EXECUTIONS, MAX_DAG_RUNS = 2_000, 20_000
#: Maximum number of workflows whose names are searched for.
MAX_NAMES = 200
#: How long ago a task may have received the id of one of the latest runs.
LOOK_BACK = timedelta(days=7)
_LINKS = (
    select(
        *(XComModel.dag_id, XComModel.task_id, XComModel.map_index, XComModel.run_id),
        *(XComModel.timestamp, XComModel.value),
        *(TaskInstance.state, TaskInstance.start_date, TaskInstance.end_date),
    )
    .join(
        TaskInstance,
        and_(
            TaskInstance.dag_id == XComModel.dag_id,
            TaskInstance.task_id == XComModel.task_id,
            TaskInstance.run_id == XComModel.run_id,
            TaskInstance.map_index == XComModel.map_index,
        ),
    )
    .where(XComModel.key == ServiceExecutionLink().xcom_key)
)


class Executions(NamedTuple):
    """Executions of tasks.

    :param is_complete: whether there are no earlier ones.
    """

    known: list[TaskExecution]
    is_complete: bool


def _session() -> AbstractContextManager[Session]:
    # Airflow 2.11 has only sessions that a thread shares.
    return create_session(scoped=False) if AIRFLOW_V_3_0_PLUS else create_session()


def connections(readable: Callable[[list[str]], Collection[str]]) -> list[str]:
    """List the ids of the connections to the service in the database.

    :param readable: selects the ids that the user may see.
    """
    with _session() as session:
        ours = select(Connection.conn_id).where(Connection.conn_type.in_(KEY_HEADERS)).order_by(Connection.conn_id)
        found = [str(one) for one in session.scalars(ours)]
    allowed = readable(found)
    return [one for one in found if one in allowed][:MAX_CONNECTIONS]


def waits() -> list[Waits]:
    """Count the waiting triggers by kind and host, for all connections: a trigger's arguments are encrypted."""
    columns = (Trigger.classpath, Job.hostname, Job.latest_heartbeat)
    with _session() as session:
        found = session.execute(
            select(*columns, func.count())
            .outerjoin(Job, Job.id == Trigger.triggerer_id)
            .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
            .group_by(*columns, Trigger.triggerer_id)
            .order_by(*columns)
        )
        return [
            Waits(str(path).rpartition(".")[2], int(number), host, heartbeat) for path, host, heartbeat, number in found
        ]


def executions(dag_id: str | None = None, run_id: str | None = None) -> Executions:
    """Read the latest executions that tasks have started or waited for, those of the latest DAG runs first.

    The links of the tasks, which are XComs, lead to them. The primary key of XComs begins with the id of the DAG run,
    and the query excludes ids below a limit, so that it reads no more rows as the database grows.

    :param dag_id: id of the only DAG to read; None for all.
    :param run_id: id of its only run to read; None for all.
    """
    with _session() as session:
        runs = _narrowed(select(DagRun.id), DagRun, dag_id, run_id).order_by(DagRun.id.desc())
        oldest = session.scalar(runs.offset(MAX_DAG_RUNS - 1).limit(1))
        found = session.execute(
            _narrowed(_LINKS, XComModel, dag_id, run_id)
            .where(XComModel.dag_run_id >= (oldest or 0))
            .order_by(XComModel.dag_run_id.desc())
            .limit(MAX_EXECUTIONS + 1)
        ).all()
    known = sorted(_read(found[:MAX_EXECUTIONS]), key=lambda one: one.began_at, reverse=True)
    return Executions(known, is_complete=oldest is None and len(found) <= MAX_EXECUTIONS)


def xcom_text(stored: object) -> str | None:
    """Read a text from the column ``value`` of an XCom; None if it holds anything else.

    Airflow's own function would import the class that an XCom names, and raise what that raises.
    """
    text = stored.decode(errors="replace") if isinstance(stored, bytes) else stored  # bytes before Airflow 3
    if isinstance(text, str) and text.startswith('"'):  # a text as JSON, not a text that Airflow stores as it is
        with suppress(ValueError):
            text = json.loads(text)
    return text if isinstance(text, str) else None


def _narrowed(query: Select[Any], model: Any, dag_id: str | None, run_id: str | None) -> Select[Any]:
    columns = ((model.dag_id, dag_id), (model.run_id, run_id))
    return query.where(*(column == value for column, value in columns if value is not None))


def _read(rows: Iterable[Any]) -> Iterator[TaskExecution]:
    for row in rows:
        address = read_execution_url(xcom_text(row.value))
        if address is not None:
            state = None if row.state is None else str(row.state)
            key = (row.dag_id, row.task_id, row.map_index, row.run_id)
            yield TaskExecution(*key, state, row.timestamp, address, row.start_date, row.end_date)


def latest_runs(known: Iterable[TaskExecution], base_url: str) -> list[TaskExecution]:
    """Select the executions on a server that tasks have started or found lately, with any connection, the latest first.

    :param known: the latest executions, on all servers.
    :param base_url: the server's address, without a trailing slash.
    """
    since = clock().utcnow() - LOOK_BACK
    runs = [one for one in known if one.address.base_url == base_url and one.known_at > since]
    return sorted(runs, key=lambda one: one.known_at, reverse=True)


def workflow_names(executions: Iterable[TaskExecution]) -> dict[Workflow, str]:
    """Read the names of workflows that tasks run by name, from the latest task of each workflow."""
    latest: dict[tuple[str, str, str, int], Workflow] = {}
    named: set[Workflow] = set()
    for one in executions:
        if one.workflow not in named and len(latest) < MAX_NAMES:
            named.add(one.workflow)
            latest[one.dag_id, one.task_id, one.run_id, one.map_index] = one.workflow
    fields = RenderedTaskInstanceFields
    key = (fields.dag_id, fields.task_id, fields.run_id, fields.map_index)
    with _session() as session:
        found = session.execute(select(*key, fields.rendered_fields).where(tuple_(*key).in_(list(latest)))).all()
    names = {latest[tuple(row[:4])]: row[4].get("workflow_name") for row in found if isinstance(row[4], dict)}
    return {workflow: name for workflow, name in names.items() if isinstance(name, str) and name}
