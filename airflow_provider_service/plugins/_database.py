"""What Airflow's database knows of connections to the service, of the waits in triggerers, and of the latest runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.jobs.job import Job
from airflow.models.connection import Connection
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS
from airflow.utils.session import create_session
from sqlalchemy import and_, func, select

from airflow_provider_service._airflow.connection import KEY_HEADERS
from airflow_provider_service._core.pages.connection_view import LatestRun, Waits
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import ServiceExecutionLink, read_execution_url

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

try:
    from airflow.models.xcom import XComModel
except ImportError:  # Airflow 2.11
    from airflow.models.xcom import BaseXCom as XComModel  # type: ignore[attr-defined,no-redef,unused-ignore]

_TRIGGERS = "airflow_provider_service.triggers."
#: Connections that are listed.
MAX_CONNECTIONS = 200
#: Task instances among which the runs on a server are looked for, the latest ones of these days.
MAX_LOOKED_AT, LOOK_BACK = 500, timedelta(days=7)


def _session() -> AbstractContextManager[Session]:
    # Airflow 2.11 has only sessions that a thread shares.
    return create_session(scoped=False) if AIRFLOW_V_3_0_PLUS else create_session()


def connections(readable: Callable[[list[str]], Collection[str]]) -> list[str]:
    """The ids of the connections to the service in the database.

    :param readable: which of these ids the reader may see.
    """
    with _session() as session:
        ours = select(Connection.conn_id).where(Connection.conn_type.in_(KEY_HEADERS)).order_by(Connection.conn_id)
        found = [str(one) for one in session.scalars(ours)]
    allowed = readable(found)
    return [one for one in found if one in allowed][:MAX_CONNECTIONS]


def waits() -> list[Waits]:
    """How many triggers of each kind wait where, whichever connection they use, since Airflow stores that encrypted."""
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


def latest_runs(base_url: str) -> list[LatestRun]:
    """The latest task instances with an execution on a server, whichever connection they used, the latest first.

    :param base_url: the server's address, without a slash at its end.
    """
    since = clock().utcnow() - LOOK_BACK
    with _session() as session:
        found = session.execute(
            select(
                XComModel.dag_id,
                XComModel.task_id,
                XComModel.map_index,
                XComModel.run_id,
                TaskInstance.state,
                XComModel.timestamp,
                XComModel.value,
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
            .where(XComModel.key == ServiceExecutionLink().xcom_key, XComModel.timestamp > since)
            .order_by(XComModel.timestamp.desc())
            .limit(MAX_LOOKED_AT)
        ).all()
    runs = []
    for row in found:
        url = XComModel.deserialize_value(row)
        address = read_execution_url(url)
        if address is not None and address.base_url == base_url:
            state = None if row.state is None else str(row.state)
            key = (row.dag_id, row.task_id, row.map_index, row.run_id)
            runs.append(LatestRun(*key, state, row.timestamp, address.execution_id, str(url)))
    return runs
