"""Airflow's own API server with the plugin, a task instance in its database, and users with different rights."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_service._airflow.attempts import ATTEMPTS_KEY
from airflow_provider_service._core.runs.attempt import STATE_KEY, key_of

DAG, RUN = "pages_dag", "manual__2026-05-04T03:02:01+00:00"
BEGAN = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def airflow_app(database: None) -> Any:
    """The application of the API server, as ``airflow api-server`` runs it."""
    from airflow.api_fastapi.app import create_app

    return create_app(apps="core")


@pytest.fixture(scope="session")
def browser_of(airflow_app: Any) -> Iterator[Callable[..., Any]]:
    """``browser_of("VIEWER")`` is a browser in which a user of this role is logged in; of None, one without rights."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    opened = []

    def browser(role: str | None, *, logged_in: bool = True, app: Any = airflow_app) -> Any:
        client = TestClient(app)
        if logged_in:
            token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="someone", role=role))
            client.cookies.set(COOKIE_NAME_JWT_TOKEN, token)
        opened.append(client)
        return client

    yield browser
    for client in opened:
        client.close()


@pytest.fixture(scope="session")
def dag_run(airflow_app: Any) -> int:
    """A run of a DAG, in which tests put task instances; its number in the database."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        if session.get(DagBundleModel, "pages") is None:
            session.add(DagBundleModel(name="pages"))
            session.flush()
        more = {"timetable_type": "x"} if hasattr(DagModel, "timetable_type") else {}  # Airflow 3.2 and newer
        session.add(DagModel(dag_id=DAG, bundle_name="pages", is_paused=False, is_stale=False, **more))
        session.flush()
        run = {"dag_id": DAG, "run_id": RUN, "run_type": "manual", "run_after": BEGAN, "start_date": BEGAN}
        session.execute(DagRun.__table__.insert().values(state="running", **run))
        return int(session.scalar(select(DagRun.id).where(DagRun.dag_id == DAG)))


@pytest.fixture
def put_task(dag_run: int) -> Iterator[Callable[..., str]]:
    """``put_task(state, links=..., fields=...)`` puts a task instance into the database and returns its path.

    ``saved`` is what stands in its state: a mapping as the task itself saves it, or anything else; ``kept`` is what
    stands there of its attempts.
    """
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    from tests.airflow_tables import ATTEMPTS_ARE_INSTANCES, key_in, new_id, xcoms

    instances, fields_table = TaskInstance.__table__, RenderedTaskInstanceFields.__table__
    if not ATTEMPTS_ARE_INSTANCES:
        from airflow.models.taskinstancehistory import TaskInstanceHistory

    def insert(table: Any, **values: Any) -> None:
        with create_session() as session:
            session.execute(table.insert().values(**values))

    def put(
        state: str | None = "deferred",
        *,
        links: dict[str, Any] | None = None,
        fields: dict[str, Any] | None = None,
        saved: Any = None,
        kept: Any = None,
        task_id: str | None = None,
        attempts: int = 1,
        map_index: int = -1,
    ) -> str:
        task_id = task_id or f"task_{uuid.uuid4().hex}"
        key = {"dag_id": DAG, "run_id": RUN, "task_id": task_id, "map_index": map_index}
        row = {**key_in(instances, key), "pool": "default_pool", "pool_slots": 1}
        own_id = new_id()
        insert(instances, **row, id=own_id, state=state, try_number=attempts, start_date=BEGAN)
        for number in range(1, attempts):
            ended = BEGAN + timedelta(seconds=number)
            earlier = {**row, "state": "failed", "try_number": number, "start_date": BEGAN, "end_date": ended}
            if ATTEMPTS_ARE_INSTANCES:
                insert(instances, **earlier, working_set=None, id=new_id())
            else:
                insert(TaskInstanceHistory.__table__, **earlier, task_instance_id=new_id())
        owner = {"task_instance_id": own_id} if ATTEMPTS_ARE_INSTANCES else key
        if fields is not None:
            insert(fields_table, **owner, rendered_fields=fields)
        for name, value in (links or {}).items():
            owner_of_xcom = owner if ATTEMPTS_ARE_INSTANCES else {**owner, "dag_run_id": dag_run}
            insert(xcoms(), **owner_of_xcom, key=name, value=value, timestamp=BEGAN)
        if isinstance(saved, dict):
            saved = {"key": key_of(SimpleNamespace(**key, try_number=1), None).task, **saved}
        for name, state in ((STATE_KEY, saved), (ATTEMPTS_KEY, kept)):
            if state is not None:
                from airflow.models.task_state_store import TaskStateStoreModel

                table = TaskStateStoreModel.__table__
                insert(table, **key_in(table, key), dag_run_id=dag_run, key=name, value=json.dumps(state))
        index = "{MAP_INDEX}" if map_index < 0 else str(map_index)
        return f"/service-pages/dags/{DAG}/runs/{RUN}/tasks/{task_id}/{index}"

    yield put
    with create_session() as session:
        own = instances.select().with_only_columns(instances.c.id).where(instances.c.dag_id == DAG)
        for table in (xcoms(), fields_table):
            is_own = table.c.task_instance_id.in_(own) if ATTEMPTS_ARE_INSTANCES else table.c.dag_id == DAG
            session.execute(table.delete().where(is_own))
        for table in [instances] if ATTEMPTS_ARE_INSTANCES else [TaskInstanceHistory.__table__, instances]:
            session.execute(table.delete().where(table.c.dag_id == DAG))


@pytest.fixture
def waiting_task(put_task: Callable[..., str]) -> Callable[..., str]:
    """``waiting_task(service_url, workflow_id, execution_id)`` puts a task that waits for an execution."""

    def put(
        base_url: str,
        workflow_id: str,
        execution_id: str,
        state: str = "deferred",
        more_links: dict[str, str] | None = None,
        **more: Any,
    ) -> str:
        workflow = f"{base_url}/workflow/{workflow_id}"
        links = {
            "_link_ServiceExecutionLink": f"{workflow}/executions/{execution_id}",
            "_link_ServiceWorkflowLink": workflow,
            **(more_links or {}),
        }
        fields = {"service_conn_id": "service_default", "execution_id": execution_id}  # as a sensor has them
        return put_task(state, links=links, fields=fields, **more)

    return put


@pytest.fixture
def pages_state(browser_of: Callable[..., Any], airflow_app: Any) -> Any:
    """What the application behind the pages keeps, once it has been made for a first request."""
    browser_of("ADMIN").get("/service-pages/connections")
    return next(one.app._app.state for one in airflow_app.routes if getattr(one, "path", "") == "/service-pages")
