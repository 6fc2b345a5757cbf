"""The page of all executions that tasks have started, for those who may read the tasks."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_service._airflow.attempts import EXECUTION_KEY
from airflow_provider_service._core.pages.executions import SHOWN
from tests import airflow_features
from tests.pages.conftest import HOSTILE

from .conftest import BEGAN, DAG, RUN

pytestmark = [airflow_features.pages, pytest.mark.usefixtures("database_without_runs")]
PREFIX, PAGE = "/service-pages", "/executions"
PAGES_OF_DAG = (f"/dags/{DAG}/executions", f"/dags/{DAG}/runs/{RUN}/executions")
SERVER = "https://service.example.com"
LONGER = timedelta(seconds=7)
_AS_IT_WAS = object()


@pytest.fixture
def reader(browser_of: Callable[..., Any], app: Any) -> Any:
    return browser_of("VIEWER", app=app)


@pytest.fixture
def app(airflow_app: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The application of the pages, which remembers nothing of other tests, and has time to read everything."""
    from airflow_provider_service.plugins import _pages
    from airflow_provider_service.plugins._app import make_app

    monkeypatch.setattr(_pages, "WAIT_SECONDS", 60.0)
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "service://:key@service.example.com")
    return make_app()


@pytest.fixture
def put(put_task: Callable[..., str]) -> Callable[..., str]:
    """``put(state, workflow_id, seconds, began=...)`` puts a task instance that ran an execution; returns its id.

    ``told`` is what the task has pushed about the execution, if it is not its start and its end; None for nothing, as
    before such things were pushed. The task itself takes ``LONGER`` than the execution.
    """
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    def one(
        state: str | None = "success",
        workflow_id: str = "w1",
        seconds: float | None = 60,
        *,
        began: datetime = BEGAN,
        name: str | None = None,
        server: str = SERVER,
        told: Any = _AS_IT_WAS,
        execution_id: str | None = None,
        **more: Any,
    ) -> str:
        execution_id = execution_id or uuid.uuid4().hex
        url = f"{server}/workflow/{workflow_id}/executions/{execution_id}"
        links: dict[str, Any] = {"_link_ServiceExecutionLink": url}
        ended = None if seconds is None else began + timedelta(seconds=seconds)
        if told is _AS_IT_WAS:
            told = {"started_at": began.isoformat(), **({} if ended is None else {"stopped_at": ended.isoformat()})}
        if told is not None:
            links[EXECUTION_KEY] = {"execution_id": execution_id, **told} if isinstance(told, dict) else told
        fields = None if name is None else {"workflow_name": name}
        fields = more.pop("fields", fields)
        task_id = put_task(state, links=links, fields=fields, **more).split("/")[-2]
        of_task = {"start_date": began - LONGER, "end_date": None if ended is None else ended + LONGER}
        with create_session() as session:
            table = TaskInstance.__table__
            session.execute(table.update().where(table.c.task_id == task_id).values(**of_task))
        return execution_id

    return one


def rows(text: str) -> list[str]:
    """The rows of the table of executions."""
    _, _, table = text.partition('id="executions"')
    return re.findall(r"<tr id=[^>]*><td>(.*?)</tr>", table, re.DOTALL)


def test_a_reader_sees_what_tasks_have_started_and_both_links(reader, put, monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/team")
    execution_id = put("failed", "w1", 75, task_id="run_orders", map_index=2)

    answer = reader.get(PAGE)

    assert answer.status_code == 200
    [row] = rows(answer.text)
    assert "</span> Failed</span>" in row
    assert f'href="{SERVER}/workflow/w1/executions/{execution_id}" target="_blank"' in row
    assert f'href="{SERVER}/workflow/w1" target="_blank"' in row
    run = f"/team/dags/{DAG}/runs/manual__2026-05-04T03%3A02%3A01%2B00%3A00"
    assert f'<a href="{run}/tasks/run_orders/mapped/2" target="_top">run_orders [2]</a>' in row
    assert f'<a href="{run}" target="_top">{RUN}</a>' in row
    assert '<time datetime="2026-05-04T03:02:01+00:00">2026-05-04 03:02:01 UTC</time>' in row
    assert "1 min 15 s" in row
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_an_empty_list_is_explained(reader, dag_run):
    text = reader.get(PAGE).text

    assert "No task that you may read has started an execution" in text
    assert not rows(text)
    assert "These are all that Airflow" in text


def test_many_are_paged_and_the_search_goes_along(reader, put):
    for at in range(SHOWN + 1):
        put(began=BEGAN + timedelta(minutes=at))
    put("failed")

    first = reader.get(PAGE, params={"state": "success"}).text
    assert "51 executions" in first
    assert len(rows(first)) == SHOWN
    assert "Page 1 of 2" in first
    [older] = re.findall(r'rel="next" href="([^"]+)"', first)
    assert older == "?state=success&amp;page=2"
    last = reader.get(PAGE, params={"state": "success", "page": "2"}).text
    assert len(rows(last)) == 1
    assert "2026-05-04 03:02:01 UTC" in rows(last)[0]
    for page in ("99", "-1", "0", "x", "9" * 100):
        assert rows(reader.get(PAGE, params={"page": page}).text)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ({}, {"one", "two", "three"}),
        ({"state": "failed"}, {"two"}),
        ({"state": "deferred"}, {"three"}),
        ({"state": "none"}, set()),
        ({"workflow": "ORDERS"}, {"one"}),
        ({"workflow": "w2"}, {"two"}),
        ({"dag": "pages_"}, {"one", "two", "three"}),
        ({"dag": "another"}, set()),
        ({"from": "2026-05-04T04:00"}, {"two", "three"}),
        ({"from": "2026-05-04T04:00", "to": "2026-05-04T05:00"}, {"two"}),
        ({"from": "2026-05-04T06:00", "zone": "Europe/Berlin"}, {"two", "three"}),
        ({"from": "2026-05-04T06:00", "zone": "../../etc/passwd"}, {"three"}),
    ],
)
def test_it_is_searched_by_state_workflow_dag_and_time(reader, put, search, found):
    ids = {
        "one": put(workflow_id="w1", name="Sync orders"),
        "two": put("failed", "w2", began=BEGAN.replace(hour=4, minute=30)),
        "three": put("deferred", "w3", None, began=BEGAN.replace(hour=6)),
    }

    text = " ".join(rows(reader.get(PAGE, params=search).text))

    assert {name for name, one in ids.items() if one in text} == found


@pytest.mark.parametrize("moment", ["yesterday", "2026-13-01", "0001-01-01T00:00+14:00", "\ud800x"])
def test_an_invalid_date_is_reported_and_nothing_is_searched(reader, put, moment):
    put()

    answer = reader.get(f"{PAGE}?from={moment.encode('utf-8', 'replace').decode()}")

    assert answer.status_code == 400
    assert "must be a date and time such as 2026-05-04T03:02" in answer.text
    assert "Nothing was searched" in answer.text
    assert not rows(answer.text)


def test_a_duration_stands_beside_what_is_usual(reader, put):
    for at in range(25):  # the earliest five took longer, and count no more
        put(seconds=40 + at % 5 if at >= 5 else 900, began=BEGAN + timedelta(minutes=at))
    put(seconds=300, began=BEGAN + timedelta(hours=1))
    put("running", seconds=None, began=BEGAN + timedelta(hours=2))

    [running, longer, usual, *_] = rows(reader.get(PAGE).text)

    assert "usually 42 s, 40 s to 5 min" in longer
    assert "usually" in running
    assert "data-since" in running
    assert "longer than usual" in running
    assert "longer than usual" not in usual


def test_what_takes_longer_or_shorter_than_usual_is_marked_with_a_sign(reader, put):
    for at in range(6):
        put(seconds=40 + at, began=BEGAN + timedelta(minutes=at))
    put("failed", seconds=300, began=BEGAN + timedelta(hours=1))
    put("failed", seconds=2, began=BEGAN + timedelta(hours=2))

    [shorter, longer, *_] = rows(reader.get(PAGE).text)

    assert "▲ longer than usual" in longer
    assert "▼ shorter than usual" in shorter


def test_an_execution_whose_task_has_not_told_its_times_shows_none_that_are_not_its_own(reader, put):
    put(told=None, seconds=300)
    put("running", told=None, seconds=None)
    put(seconds=2)

    page = rows(reader.get(PAGE).text)
    [running] = [row for row in page if "Running" in row]
    [known] = [row for row in page if "known since" not in row]
    [old] = [row for row in page if row not in (running, known)]

    assert "known since <time" in old
    assert "—</td>" in old
    assert "known since <time" in running
    assert "data-since" not in running
    assert "2 s" in known
    assert "usually 2 s" in running  # and not one of the task's


def test_an_execution_under_way_counts_from_its_own_start(reader, put):
    put("deferred", seconds=None, told={"started_at": "2026-05-04T02:00:00.000Z"})

    [row] = rows(reader.get(PAGE).text)

    assert 'data-since="2026-05-04T02:00:00+00:00"' in row


@pytest.mark.parametrize(
    "told",
    [
        "text",
        "{" * 100_000,
        '{"a":' * 1_000,
        ["2026-05-04T02:00:00Z"],
        {"execution_id": "7", "started_at": "2026-05-04T02:00:00Z"},
        {"started_at": 7, "stopped_at": {}, "workflow_name": ["x"]},
        {"started_at": "yesterday"},
        {"started_at": "0001-01-01T00:00:00+14:00"},
        {"started_at": "9999-12-31T23:59:59Z", "stopped_at": "9999-12-31T23:59:59Z"},
        {"started_at": "1970-01-01T00:00:00Z", "stopped_at": "2026-05-04T02:00:00Z"},
        {"stopped_at": "2026-05-04T02:00:00Z"},
    ],
    ids=range(11),
)
def test_what_a_task_has_told_may_have_any_shape(reader, put, told):
    put(told=told)
    put(workflow_id="w2", seconds=2)

    [first, second] = rows(reader.get(PAGE).text)

    assert "known since <time" in first + second
    assert (first + second).count("—</td>") == 1
    assert "2 s" in first + second


def test_an_execution_cannot_end_before_it_began(reader, put):
    put(told={"started_at": "2026-05-04T03:00:00Z", "stopped_at": "2026-05-04T02:00:00Z"})

    [row] = rows(reader.get(PAGE).text)

    assert "2026-05-04 03:00:00 UTC" in row
    assert "—</td>" in row


def test_a_workflow_keeps_the_newest_name_that_a_task_has_told(reader, put):
    put(name="Argument of the task")
    put(told={"workflow_name": "Sync orders", "started_at": "2026-05-04T05:00:00Z"})
    put(told={"workflow_name": "Old name"})
    put(began=BEGAN + timedelta(hours=3))

    found = rows(reader.get(PAGE, params={"workflow": "NC ORD"}).text)

    assert len(found) == 4
    assert all(">Sync orders</a>" in row for row in found)


def test_a_workflow_keeps_its_name_if_its_newest_task_knows_none(reader, put):
    put(name="Sync orders", task_id="run")
    put(began=BEGAN + timedelta(hours=1), task_id="wait")

    found = rows(reader.get(PAGE, params={"workflow": "orders"}).text)

    assert len(found) == 2
    assert all(">Sync orders</a>" in row for row in found)


@pytest.mark.parametrize("name", [HOSTILE, "\ud800", "x" * 100_000, ""], ids=range(4))
def test_a_name_that_a_task_has_told_is_shown_as_text(reader, put, name):
    put(told={"workflow_name": name})

    answer = reader.get(PAGE)

    assert len(rows(answer.text)) == 1
    assert "<img" not in answer.text
    assert "x" * 200 not in answer.text


def test_days_are_plotted_and_given_in_numbers(reader, put):
    put(began=datetime(2026, 5, 3, 23, 30, tzinfo=UTC), seconds=10)
    put("failed", seconds=30)
    put("deferred", seconds=None)

    def days(**params: str) -> list[tuple[str, ...]]:
        text = reader.get(PAGE, params=params).text
        assert text.count("<svg") >= 2
        return re.findall(r'<tr><th scope="row">([\d-]+)</th>' + r'<td class="number">(\d+)</td>' * 3, text)

    assert days() == [("2026-05-04", "0", "1", "1"), ("2026-05-03", "1", "0", "0")]
    assert days(zone="Europe/Berlin") == [("2026-05-04", "1", "1", "1")]


def test_several_workflows_are_compared_and_each_narrows_the_search(reader, put):
    put(workflow_id="w1", name="Sync & orders")
    put(workflow_id="w2")

    text = reader.get(PAGE, params={"state": "success"}).text

    assert 'href="?state=success&amp;workflow=Sync+%26+orders">Sync &amp; orders</a>' in text
    assert 'href="?state=success&amp;workflow=w2">w2</a>' in text


def test_names_of_strangers_are_escaped_and_their_addresses_are_no_links(reader, put):
    put(name=HOSTILE, task_id=HOSTILE)
    put(server="javascript:alert(1)//x")
    put(server='https://x.example.com/"onmouseover="alert(1)')
    put(workflow_id="../../settings")

    text = reader.get(PAGE, params={"workflow": HOSTILE}).text
    everything = reader.get(PAGE).text

    assert len(rows(text)) == 1
    for page in (text, everything):
        assert "<img" not in page
        assert "javascript:" not in page
        assert '"onmouseover' not in page
        assert "../../settings" not in page


def test_an_xcom_of_any_shape_is_left_out(reader, put_task):
    for value in ("x", 7, None, ["a"], {"a": 1}, f"{SERVER}/workflow/w/executions/{'7' * 5_000}"):
        put_task("success", links={"_link_ServiceExecutionLink": value})

    assert "No task that you may read" in reader.get(PAGE).text


@pytest.mark.parametrize("value", [json.dumps({"__classname__": "no.such.Class", "__version__": 1}), "[" * 100_000])
def test_an_xcom_of_one_task_hides_the_executions_of_no_other(reader, put, put_task, value):
    put()
    path = put_task("success", links={"_link_ServiceExecutionLink": value})

    for page in (PAGE, *PAGES_OF_DAG):
        assert len(rows(reader.get(page).text)) == 1
    assert reader.get(path.removeprefix(PREFIX)).status_code == 200


@pytest.mark.parametrize("path", [PAGE, *PAGES_OF_DAG])
def test_who_is_not_logged_in_sees_nothing(browser_of, put, path):
    execution_id = put()
    answer = browser_of(None, logged_in=False).get(PREFIX + path)

    assert answer.status_code == 401
    assert execution_id not in answer.text


@pytest.mark.parametrize("path", PAGES_OF_DAG)
def test_who_may_not_read_the_dag_does_not_see_its_page(browser_of, put, path):
    execution_id = put()
    answer = browser_of(None).get(PREFIX + path)

    assert answer.status_code == 403
    assert execution_id not in answer.text


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, airflow_app: Any) -> list[tuple[str, str, str]]:
    """What was asked of Airflow, which lets nobody read the task instances of the DAG."""
    from airflow.api_fastapi.app import get_auth_manager

    asked = []

    def refuse(**question: Any) -> bool:
        asked.append((question["method"], question["access_entity"].value, question["details"].id))
        return question["details"].id != DAG

    monkeypatch.setattr(get_auth_manager(), "is_authorized_dag", refuse)
    return asked


def test_who_may_not_read_the_tasks_of_a_dag_sees_neither_them_nor_their_names(reader, put, refused):
    execution_id = put(name="Secret workflow", workflow_id="w7")

    text = reader.get(PAGE).text

    for secret in (execution_id, "Secret workflow", "w7", DAG):
        assert secret not in text
    assert "No task that you may read" in text
    assert refused == [("GET", "TASK_INSTANCE", DAG)]


@pytest.fixture
def of_teams(dag_run: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The DAG belongs to a team, and there is another one."""
    from airflow.models.dag import DagModel
    from airflow.models.team import Team, dag_bundle_team_association_table
    from airflow.utils.session import create_session

    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    owns = dag_bundle_team_association_table
    forget = getattr(DagModel.get_team_name, "cache_clear", lambda: None)  # Airflow 3.3 remembers teams for a while
    forget()
    with create_session() as session:
        session.execute(Team.__table__.insert(), [{"name": "shop"}, {"name": "bank"}])
        session.execute(owns.insert().values(dag_bundle_name="pages", team_name="shop"))
    yield
    with create_session() as session:
        session.execute(owns.delete())
        session.execute(Team.__table__.delete())
    forget()


@airflow_features.teams
@pytest.mark.parametrize(("team", "sees"), [("shop", True), ("bank", False)])
def test_the_executions_of_other_teams_are_not_shown(app, put, of_teams, team, sees):
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    execution_id = put()
    user = SimpleAuthManagerUser(username="someone", role="USER", teams=[team])
    with TestClient(app) as browser:
        browser.cookies.set(COOKIE_NAME_JWT_TOKEN, get_auth_manager().generate_jwt(user))
        assert (execution_id in browser.get(PAGE).text) is sees
        assert browser.get(f"/dags/{DAG}/executions").status_code == (200 if sees else 403)


def test_the_page_of_a_dag_and_of_a_run_are_narrowed(reader, put):
    execution_id = put()

    for path, there in (
        (f"/dags/{DAG}/executions", True),
        (f"/dags/{DAG}/runs/{RUN}/executions", True),
        ("/dags/another_dag/executions", False),
        (f"/dags/{DAG}/runs/another_run/executions", False),
    ):
        answer = reader.get(path)
        assert answer.status_code == 200
        assert (execution_id in answer.text) is there


def test_it_says_how_far_it_looks_back(reader, put, monkeypatch):
    from airflow_provider_service.plugins import _airflow_tables

    monkeypatch.setattr(_airflow_tables, "MAX_EXECUTIONS", 2)
    for at in range(3):
        put(began=BEGAN + timedelta(minutes=at))

    text = reader.get(PAGE).text

    assert "2 executions" in text
    assert "there are earlier ones" in text


def test_runs_before_the_latest_ones_are_not_read(reader, put, monkeypatch):
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    from airflow_provider_service.plugins import _airflow_tables

    put()
    monkeypatch.setattr(_airflow_tables, "MAX_DAG_RUNS", 1)
    later = {"dag_id": DAG, "run_id": "later", "run_type": "manual", "run_after": BEGAN, "state": "success"}
    with create_session() as session:
        session.execute(DagRun.__table__.insert().values(**later))
    try:
        text = reader.get(PAGE).text
    finally:
        with create_session() as session:
            session.query(DagRun).where(DagRun.run_id == "later").delete()

    assert "No task that you may read" in text
    assert "there are earlier ones" in text


def test_viewers_at_the_same_time_share_one_read(reader, put, app, monkeypatch):
    from airflow_provider_service.plugins import _airflow_tables

    reads = []
    read = _airflow_tables.executions
    monkeypatch.setattr(_airflow_tables, "executions", lambda *of: reads.append(of) or read(*of))
    put()

    for _ in range(3):
        assert reader.get(PAGE).status_code == 200
    reader.get(f"/dags/{DAG}/executions")

    assert reads == [(None, None), (DAG, None)]
