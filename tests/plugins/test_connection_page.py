"""The page of a connection, for those who may read it in Airflow."""

from __future__ import annotations

import pytest

from tests import airflow_features

pytestmark = airflow_features.pages
PAGE = "/service-pages/connections/service_default"


def test_who_may_read_the_connection_sees_whether_it_works(browser_of, simulator):
    answer = browser_of("OP").get(PAGE)

    assert answer.status_code == 200
    assert "All checks passed" in answer.text
    assert "run a workflow and wait for it" in answer.text
    assert simulator.api_key not in answer.text
    assert (
        "default-src &#39;none&#39;" in answer.text or "default-src 'none'" in answer.headers["content-security-policy"]
    )


@pytest.mark.parametrize(
    ("role", "logged_in", "status"), [("VIEWER", True, 403), (None, True, 403), (None, False, 401)]
)
def test_nobody_else_sees_anything(browser_of, simulator, role, logged_in, status):
    simulator.clear_requests()
    browser = browser_of(role, logged_in=logged_in)

    for path in (PAGE, "/service-pages/connections"):
        assert browser.get(path).status_code == status
    assert not simulator.requests


def test_the_connections_of_the_database_are_listed(browser_of):
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(
            Connection(conn_id="pages_listed", conn_type="service", host="https://x.example.com", password="s3cr3t")
        )
        session.add(Connection(conn_id="pages_other", conn_type="http"))
    try:
        text = browser_of("OP").get("/service-pages/connections").text
    finally:
        with create_session() as session:
            session.query(Connection).where(Connection.conn_id.in_(["pages_listed", "pages_other"])).delete()

    assert "/service-pages/connections/pages_listed" in text
    assert "pages_other" not in text
    assert "s3cr3t" not in text


def test_a_connection_that_is_not_there_is_told(browser_of, simulator):
    answer = browser_of("ADMIN").get("/service-pages/connections/no_such_connection")

    assert answer.status_code == 200
    assert "cannot be used" in answer.text
