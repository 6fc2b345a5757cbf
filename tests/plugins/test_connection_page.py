"""The page of a connection, for those who may read it in Airflow."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from airflow_provider_service._cli import commands
from airflow_provider_service._core.pages.reading import MAX_READS
from airflow_provider_service.client._clock import using
from tests import airflow_features
from tests.pages.conftest import start as start
from tests.polling import wait_until
from tests.set_clock import SetClock

pytestmark = [airflow_features.pages, pytest.mark.usefixtures("database_without_runs")]
PAGE = "/service-pages/connections/service_default"


def test_who_may_read_the_connection_sees_whether_it_works(browser_of, simulator):
    answer = browser_of("OP").get(PAGE)

    assert answer.status_code == 200
    assert "Ready for 16 of 17 jobs. 3 notes." in answer.text
    assert "run a workflow and wait for it" in answer.text
    assert simulator.api_key not in answer.text
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("role", "logged_in", "status"), [("VIEWER", True, 403), (None, True, 403), (None, False, 401)]
)
def test_nobody_else_sees_anything(browser_of, simulator, role, logged_in, status):
    simulator.clear_requests()
    browser = browser_of(role, logged_in=logged_in)

    for path in (PAGE, "/service-pages/connections"):
        assert browser.get(path).status_code == status
    assert not simulator.requests


@pytest.fixture
def stored(simulator: Any, database: None) -> Iterator[None]:
    """Connections in Airflow's database: one that works, one with a wrong key, and one to something else."""
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    names = ("pages_n8n", "pages_service", "pages_other")
    with create_session() as session:
        for name, kind, key in zip(names, ("n8n", "service", "http"), ("s3cr3t", simulator.api_key, None), strict=True):
            session.add(Connection(conn_id=name, conn_type=kind, host=simulator.base_url, password=key))
    yield
    with create_session() as session:
        session.query(Connection).where(Connection.conn_id.in_(names)).delete()


@pytest.mark.usefixtures("stored")
def test_the_connections_of_the_database_are_listed_with_their_states(browser_of, simulator, monkeypatch):
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")  # as in the API server, which has a database
    browser = browser_of("OP")

    first = browser.get("/service-pages/connections").text
    assert "pages_n8n" in first
    shown = wait_until(
        lambda: next(filter(lambda text: "being examined" not in text, [list_of(browser)]), None),
        seconds=60,
        what="the examinations",
        interval=0.1,
    )

    assert "data-follow" not in shown
    [bad, good] = [row for row in re.findall(r"<tr><th .*?</tr>", shown, re.DOTALL) if "pages_" in row]
    assert '<a href="connections/pages_n8n">' in bad
    assert "✕</span> failed</span>" in bad
    assert "1 check failed: key. The rest was not examined." in bad
    assert '<a href="connections/pages_service">' in good
    assert "✓</span> ok</span> Ready for 16 of 17 jobs. 3 notes." in " ".join(good.split())
    for text in (first, shown):
        assert "pages_other" not in text
        assert "s3cr3t" not in text
        assert simulator.api_key not in text


def list_of(browser: Any) -> str:
    """The part of the list of connections that changes, as the page asks for it again."""
    return str(browser.get("/service-pages/connections", params={"part": "view"}).text)


@pytest.mark.usefixtures("stored")
def test_of_many_connections_the_list_examines_the_first(browser_of, simulator, monkeypatch):
    from airflow_provider_service.plugins import _pages

    monkeypatch.setattr(_pages, "MAX_EXAMINED", 0)
    simulator.clear_requests()

    text = list_of(browser_of("OP"))

    assert text.count("its own page examines it") == 2
    assert "data-follow" not in text
    assert not simulator.requests


@airflow_features.teams
def test_the_connections_of_other_teams_are_not_listed(airflow_app, monkeypatch):
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.models.connection import Connection
    from airflow.models.team import Team
    from airflow.utils.session import create_session
    from fastapi.testclient import TestClient

    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    names = {team: f"pages_of_{team or 'nobody'}" for team in ("shop", "bank", None)}
    with create_session() as session:
        session.add_all([Team(name="shop"), Team(name="bank")])
        session.flush()
        for team, name in names.items():
            session.add(Connection(conn_id=name, conn_type="service", host="https://x.example.com", team_name=team))
    try:
        user = SimpleAuthManagerUser(username="someone", role="OP", teams=["shop"])
        with TestClient(airflow_app) as browser:
            browser.cookies.set(COOKIE_NAME_JWT_TOKEN, get_auth_manager().generate_jwt(user))
            text = browser.get("/service-pages/connections").text
    finally:
        with create_session() as session:
            session.query(Connection).where(Connection.conn_id.in_(names.values())).delete()
            session.query(Team).delete()

    assert [name in text for name in names.values()] == [True, False, True]


def test_the_password_of_another_type_of_connection_is_not_sent_to_its_host(browser_of, simulator, monkeypatch, capsys):
    other = json.loads(simulator.connection_json())
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps({**other, "conn_type": "postgres"}))
    simulator.clear_requests()

    answer = browser_of("OP").get("/service-pages/connections/database")
    status = commands.main(["doctor", "database"])

    assert status == 1
    for text in (answer.text, capsys.readouterr().out):
        assert "of type" in text
        assert "postgres" in text
        assert "nothing was sent" in text
    assert not simulator.requests


def test_a_missing_connection_is_reported_until_it_is_added(browser_of, simulator, monkeypatch):
    from airflow_provider_service.plugins._pages import KEEP_CHECKUP_SECONDS

    browser, path = browser_of("ADMIN"), "/service-pages/connections/added_later"
    with using(SetClock()) as clock:
        answer = browser.get(path)
        monkeypatch.setenv("AIRFLOW_CONN_ADDED_LATER", simulator.connection_json())
        clock.advance(KEEP_CHECKUP_SECONDS - 1)
        added = browser.get(path).text

    assert answer.status_code == 200
    assert "1 check failed: connection. The rest was not examined." in answer.text
    assert "'added_later' cannot be used: Airflow has no such connection" in html.unescape(answer.text)
    assert "Ready for" in added


def test_a_connection_that_too_many_pages_wait_for_is_not_said_to_be_unusable(browser_of, pages_state, simulator):
    go = threading.Event()
    for at in range(MAX_READS):
        pages_state.checkups.look(("busy", at), lambda _: go.wait(60), group="pages_busy")
    try:
        text = browser_of("OP").get("/service-pages/connections/pages_busy").text
    finally:
        go.set()

    assert "too many pages wait for it; reload the page" in text
    assert "cannot be used" not in text


@pytest.fixture
def put_waits(airflow_app: Any) -> Iterator[Callable[..., None]]:
    """``put_waits(number, host, silent_for)`` has a triggerer keep waits; one without a host has not taken them."""
    from airflow.jobs.job import Job
    from airflow.models.trigger import Trigger
    from airflow.utils.session import create_session

    def put(number: int, host: str | None = None, silent_for: timedelta = timedelta()) -> None:
        now = datetime.now(UTC)
        with create_session() as session:
            job_id = None
            if host is not None:
                beat = {"job_type": "TriggererJob", "state": "running", "latest_heartbeat": now - silent_for}
                job_id = session.execute(Job.__table__.insert().values(hostname=host, **beat)).inserted_primary_key[0]
            path = "airflow_provider_service.triggers.execution.ServiceExecutionTrigger"
            row = {"classpath": path, "kwargs": "", "created_date": now, "triggerer_id": job_id}
            session.execute(Trigger.__table__.insert(), [row] * number)

    yield put
    with create_session() as session:
        session.execute(Trigger.__table__.delete())
        session.execute(Job.__table__.delete())


def cells(text: str) -> str:
    return " ".join(text.replace("<", " <").replace(">", "> ").split())


def test_the_waits_of_each_triggerer_are_counted(browser_of, put_waits, simulator):
    put_waits(3, "triggerer-1")
    put_waits(2, "triggerer-2", timedelta(minutes=10))
    put_waits(1)

    text = cells(browser_of("OP").get(PAGE).text)

    for host, number in [("triggerer-1", 3), ("triggerer-2", 2), ("none yet", 1)]:
        begin = text.index(f"> {host} <")
        row = text[begin : text.index("</tr>", begin)]
        assert "ServiceExecutionTrigger" in row
        assert f"> {number} <" in row
        assert ("check whether it still runs" in row) is (host == "triggerer-2")


@pytest.fixture
def started(waiting_task, start, simulator, pages_state):
    """An execution that a task of Airflow waits for, and one on another server; the id and the task's name."""
    from airflow.utils.session import create_session

    from airflow_provider_service.plugins import _pages
    from tests.airflow_tables import xcoms

    pages_state.executions = _pages.ListPages(1)  # nothing that was read for other tests
    workflow_id, execution_id = start("waits")
    path = waiting_task(simulator.base_url, workflow_id, execution_id)
    waiting_task("https://elsewhere.example.com", "w", "987654")
    with create_session() as session:
        session.execute(xcoms().update().values(timestamp=datetime.now(UTC)))
    return execution_id, path.split("/")[-2]


def test_who_may_read_the_dag_sees_its_latest_runs(browser_of, started, simulator, capsys):
    execution_id, task_id = started

    text = cells(browser_of("OP").get(PAGE).text)

    assert f"/executions/{execution_id}" in text
    assert task_id in text
    assert "deferred" in text
    assert "987654" not in text

    commands.main(["doctor"])
    told = capsys.readouterr().out
    assert task_id in told
    assert "987654" not in told


def test_its_readers_and_those_of_all_executions_share_one_read(browser_of, started, pages_state, monkeypatch):
    reads, execute = [], Session.execute

    def watch(session: Any, query: Any, *values: Any, **named: Any) -> Any:
        if "xcom" in str(query):
            reads.append(query)
        return execute(session, query, *values, **named)

    monkeypatch.setattr(Session, "execute", watch)
    with using(SetClock()):
        for _ in range(3):
            assert started[1] in browser_of("OP").get(PAGE).text
            assert started[1] in browser_of("VIEWER").get("/service-pages/executions").text

    assert len(reads) == 2  # the links, and what the tasks have told about the executions


def test_the_link_of_a_run_leaves_the_frame_of_the_page(browser_of, started, simulator):
    browser = browser_of("OP")
    answer = browser.get(PAGE)

    [link] = re.findall(rf'<a href="[^"]*/executions/{started[0]}"[^>]*>', answer.text)
    assert 'target="_blank"' in link
    scripts = re.findall(r'<script src="([^"]+)"', answer.text)
    assert any("outside.js" in one for one in scripts)
    assert {browser.get(one).status_code for one in scripts} == {200}
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_task_and_run_of_the_dag_lead_into_airflow(browser_of, started, monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/team")

    text = browser_of("OP").get(PAGE).text

    run = "/team/dags/pages_dag/runs/manual__2026-05-04T03%3A02%3A01%2B00%3A00"
    assert f'<a href="{run}/tasks/{started[1]}" target="_top">' in text
    assert f'<a href="{run}" target="_top">' in text
    assert '<a href="/team/dags/pages_dag" target="_top">' in text


def test_page_and_command_say_the_same_in_the_same_order_with_notes_last(browser_of, simulator, capsys, monkeypatch):
    text = browser_of("OP").get(PAGE).text
    commands.main(["doctor"])
    first, *lines = capsys.readouterr().out.split("\n\n")[0].splitlines()

    assert f">{first}</p>" in text
    rows = re.findall(r'<span class="subject">(.*?)</span></th>(?:<td>(.*?)</td>)?</tr>', html.unescape(text))
    assert [line[6:] for line in lines] == [
        f"{subject}: {finding}" if finding else subject for subject, finding in rows
    ]
    monkeypatch.setenv("AIRFLOW_CONN_WITHOUT_KEY", '{"conn_type": "n8n", "host": "http://x.test"}')
    commands.main(["doctor", "without_key"])
    wrong = capsys.readouterr().out.splitlines()[1]
    assert wrong == "FAIL  connection: 'without_key' cannot be used: password is empty; it holds the API key"
    shown = html.unescape(browser_of("OP").get("/service-pages/connections/without_key").text)
    assert f"<td>{wrong.removeprefix('FAIL  connection: ')}</td>" in shown

    signs = re.findall(r'class="state grade-\w+"> <span aria-hidden="true"> (.) </span>', cells(text))
    assert (signs, set(signs)) == (sorted(signs, key="✓○".index), {"✓", "○"})


def test_only_the_page_of_a_connection_to_n8n_is_named_after_it(browser_of, simulator, monkeypatch):
    fields = json.loads(simulator.connection_json())
    header = {"extra": {"key_header": "X-N8N-API-KEY"}}
    monkeypatch.setenv("AIRFLOW_CONN_PAGES_OF_N8N", json.dumps({**fields, "conn_type": "n8n"}))
    monkeypatch.setenv("AIRFLOW_CONN_PAGES_BY_HEADER", json.dumps({**fields, **header}))

    titles = [
        ("pages_of_n8n", "n8n connection"),
        ("pages_by_header", "n8n connection"),
        ("service_default", "Connection"),
    ]
    for name, title in titles:
        text = browser_of("OP").get(f"/service-pages/connections/{name}").text
        assert text.count(f">{title} {name}<") == 2
        assert (">Open n8n<" in text, ">Open the service<" in text) == (
            (True, False) if "n8n" in title else (False, True)
        )


def test_the_default_id_leads_to_the_page_of_the_connection_that_it_stands_for(
    browser_of, pages_state, simulator, monkeypatch
):
    from airflow.api_fastapi.app import get_auth_manager

    from airflow_provider_service.plugins import _pages

    pages_state.checkups = _pages.connection_snapshots(1)  # nothing that was read for other tests
    monkeypatch.setenv("AIRFLOW_CONN_N8N_DEFAULT", simulator.connection_json())
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    browser = browser_of("OP")

    answer = browser.get(PAGE, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "n8n_default")
    assert "Connection n8n_default" in browser.get(PAGE).text

    may_read = get_auth_manager().is_authorized_connection
    refusing = lambda **question: question["details"].conn_id != "n8n_default" and may_read(**question)  # noqa: E731
    monkeypatch.setattr(get_auth_manager(), "is_authorized_connection", refusing)
    assert browser.get(PAGE).status_code == 403


def test_who_may_not_read_the_dag_sees_none_of_its_runs(browser_of, started, simulator, monkeypatch):
    from airflow.api_fastapi.app import get_auth_manager

    asked = []

    def refuse(**question: Any) -> bool:
        asked.append((question["method"], question["access_entity"].value, question["details"].id))
        return False

    browser = browser_of("OP")
    monkeypatch.setattr(get_auth_manager(), "is_authorized_dag", refuse)
    answer = browser.get(PAGE)

    assert answer.status_code == 200
    assert started[1] not in answer.text
    assert "There are none in the last seven days that you may read" in answer.text
    assert asked == [("GET", "TASK_INSTANCE", "pages_dag")]


def test_old_runs_are_not_shown(browser_of, waiting_task, start, simulator):
    path = waiting_task(simulator.base_url, *start("succeeds"))  # with a timestamp of long ago

    assert path.split("/")[-2] not in browser_of("OP").get(PAGE).text
