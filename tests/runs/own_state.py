"""What Airflow answers a task that asks for its own state: by its supervisor, on Airflow 2 in its database."""

from __future__ import annotations

from typing import Any

import pytest

from tests.airflow_features import AIRFLOW
from tests.waits.driving import Supervisor

Answer = str | Exception | None


class OwnState:
    """Sets what a task of :class:`TaskRun` is told.

    :param patch: of the test.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def becomes(self, state: Answer, execution_id: str | None = None, *, attempt: int = 1) -> None:
        """Answer this from now on.

        :param state: of the task, None before it is scheduled; an exception is raised instead.
        :param execution_id: what the latest attempt has pushed.
        :param attempt: the latest attempt; only Airflow 2 tells it.
        """
        if not AIRFLOW.startswith("2."):
            supervisor = "airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS"
            self._patch.setattr(supervisor, Supervisor(state, execution_id), raising=False)
        elif isinstance(state, Exception):
            self._patch.setattr("airflow.settings.Session", _raises(state))
        else:
            _write(state, execution_id, attempt)


def _raises(error: Exception) -> Any:
    def session(*_: Any, **__: Any) -> Any:
        raise error

    return session


def _write(state: str | None, execution_id: str | None, attempt: int) -> None:
    """Let the database of Airflow 2 hold the task."""
    from airflow.models import DagRun, TaskInstance, XCom
    from airflow.providers.common.compat.sdk import DAG, BaseOperator, timezone
    from airflow.utils.session import create_session

    with DAG("dag", schedule=None, start_date=timezone.utcnow()):
        task = BaseOperator(task_id="task")
    with create_session() as session:
        for model in (XCom, TaskInstance, DagRun):
            session.query(model).delete()
        if state == "deleted":
            return
        session.add(DagRun("dag", "manual__1", execution_date=timezone.utcnow(), run_type="manual"))
        session.flush()
        ti = TaskInstance(task, run_id="manual__1", state=state)
        ti.try_number = attempt
        session.add(ti)
        session.flush()
        if execution_id is not None:
            key = {"dag_id": "dag", "task_id": "task", "run_id": "manual__1"}
            XCom.set(key="execution_id", value=execution_id, session=session, **key)
