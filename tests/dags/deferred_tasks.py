"""Deferred tasks in Airflow's database, and a triggerer of Airflow's own that runs their triggers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.dag_processing.collection import update_dag_parsing_results_in_db
from airflow.jobs.job import Job
from airflow.models.dagbundle import DagBundleModel
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.providers.common.compat.sdk import timezone
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import LazyDeserializedDAG
from airflow.triggers.base import BaseTrigger
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import delete, select

from tests.polling import wait_until

DAG_ID = "deferred_tasks"
BUNDLE = "deferred-tasks"
# Airflow makes its API within the triggerer at the first question, which takes half a minute on a busy machine.
soon = partial(wait_until, seconds=300.0)


@dataclass
class DeferredTask:
    """A task instance that a trigger waits for, in a DAG run of its own."""

    run_id: str
    task_id: str
    map_index: int
    trigger_id: int

    def change(self, act: Callable[[Any, Any], object]) -> None:
        """Do something to the task instance within a session."""
        with create_session() as session:
            act(self._row(session), session)

    def push(self, key: str, value: Any) -> None:
        """Write an XCom of the task."""
        with create_session() as session:
            XComModel.set(
                key=key,
                value=value,
                dag_id=DAG_ID,
                task_id=self.task_id,
                run_id=self.run_id,
                map_index=self.map_index,
                serialize=False,  # as the API that takes it from a worker
                session=session,
            )

    def log(self) -> str:
        """What its trigger has logged, in the task's own log."""
        place = Path(os.environ["AIRFLOW_HOME"], "logs", f"dag_id={DAG_ID}", f"run_id={self.run_id}")
        return "".join(path.read_text() for path in place.rglob("*.trigger.*.log"))

    def _row(self, session: Any) -> Any:
        return session.scalars(
            select(TaskInstance).where(
                TaskInstance.run_id == self.run_id,
                TaskInstance.task_id == self.task_id,
                TaskInstance.map_index == self.map_index,
            )
        ).one()


def write_dag() -> Any:
    """Write a DAG with a plain and a mapped task into the database, as the DAG processor does."""
    with DAG(DAG_ID, schedule=None) as dag:
        BashOperator(task_id="plain", bash_command="true")
        BashOperator.partial(task_id="mapped").expand(bash_command=["true", "true"])
    lazy = LazyDeserializedDAG.from_dag(dag)
    with create_session() as session:
        session.merge(DagBundleModel(name=BUNDLE))
        session.flush()
        update_dag_parsing_results_in_db(BUNDLE, None, [lazy], {}, None, set(), session)
    return lazy._real_dag


def forget_triggers() -> None:
    """Delete the triggers that earlier tests have left: they would wait for executions with the same ids."""
    with create_session() as session:
        session.execute(delete(Trigger))


def defer(dag: Any, name: str, trigger: BaseTrigger, task_id: str) -> DeferredTask:
    """Put a task of a new DAG run into the state in which a worker leaves a task that defers."""
    now = timezone.utcnow()
    with create_session() as session:
        run = dag.create_dagrun(
            run_id=name,
            logical_date=None,
            run_after=now,
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state=DagRunState.RUNNING,
            start_date=now,
            session=session,
        )
        ti = max((ti for ti in run.get_task_instances(session=session) if ti.task_id == task_id), key=_map_index)
        row = Trigger.from_object(trigger)
        session.add(row)
        session.flush()
        ti.state, ti.try_number, ti.trigger_id = TaskInstanceState.DEFERRED, 1, row.id
        return DeferredTask(name, task_id, ti.map_index, row.id)


def _map_index(ti: Any) -> int:
    return int(ti.map_index)


def give_to_another_triggerer(task: DeferredTask) -> None:
    """Assign the trigger of a task to a triggerer that is alive, as one does that finds its owner silent."""
    with create_session() as session:
        other = Job(latest_heartbeat=timezone.utcnow() + timedelta(hours=1))
        other.job_type, other.state = "TriggererJob", "running"
        session.add(other)
        session.flush()
        session.get(Trigger, task.trigger_id).triggerer_id = other.id


@contextmanager
def triggerer(output: Path) -> Iterator[None]:
    """``airflow triggerer``, until the end of the block. What it printed is shown if a wait in the block is in vain."""
    command = [sys.executable, "-m", "airflow", "triggerer", "--skip-serve-logs"]
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield
        except TimeoutError:
            print(output.read_text()[-20_000:])
            raise
        finally:
            process.terminate()
