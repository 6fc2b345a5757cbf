"""What Airflow's database knows of connections to the service and of the waits that its triggerers keep."""

from __future__ import annotations

from airflow.models.connection import Connection
from airflow.models.trigger import Trigger
from airflow.utils.session import create_session
from sqlalchemy import func, select

_TRIGGERS = "airflow_provider_service.triggers."
#: Connections that are listed.
MAX_CONNECTIONS = 200


def listed() -> list[str]:
    """The ids of the connections to the service in the database."""
    with create_session(scoped=False) as session:
        found = session.scalars(
            select(Connection.conn_id)
            .where(Connection.conn_type == "service")
            .order_by(Connection.conn_id)
            .limit(MAX_CONNECTIONS)
        )
        return [str(one) for one in found]


def waits() -> list[tuple[str, int]]:
    """How many triggers of each kind wait, whichever connection they use, since Airflow stores that encrypted."""
    with create_session(scoped=False) as session:
        found = session.execute(
            select(Trigger.classpath, func.count())
            .where(Trigger.classpath.startswith(_TRIGGERS, autoescape=True))
            .group_by(Trigger.classpath)
            .order_by(Trigger.classpath)
        )
        return [(str(path).rpartition(".")[2], int(count)) for path, count in found]
