"""The DAGs of the guides for everyday jobs do what the guides say."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import SimulatedService, run_task
from scripts.dag_runner import load_dag, run_dag
from tests.runs.workflows import held, put, puts_out, started_with, webhook

from .mail_server import mail_server

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]

FUNCTIONS = Path(__file__).parent / "functions"


def states(tasks: list[Any]) -> dict[str, str]:
    return {one.task_id: one.state for one in tasks}


@pytest.mark.slow
@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("approved", "published"), [(True, "success"), (False, "skipped")])
def test_a_person_decides_days_later(service: SimulatedService, approved: bool, published: str) -> None:
    service.workflow("Ask for approval", output=[{"approved": approved}], takes=timedelta(days=2))
    service.workflow("Publish")

    state, tasks = run_dag(FUNCTIONS / "approval_dag.py")

    assert (state, states(tasks)["publish"]) == ("success", published)
    service.assert_ran("Ask for approval", payload={"release": "2026-01"})
    service.assert_ran("Publish", times=int(approved))


def test_nobody_decides_in_time(service: SimulatedService) -> None:
    waiting = service.workflow("Ask for approval", output=[{"approved": True}], takes=timedelta(days=4))

    with pytest.raises(Exception, match="had not ended"):
        run_task(load_dag(FUNCTIONS / "approval_dag.py").get_task("ask"))

    assert [run.status for run in waiting.runs] == ["canceled"]


@pytest.mark.usefixtures("database")
def test_a_task_reads_the_file_that_a_workflow_has_stored(simulator: ServiceSimulator, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_bytes(b"one\ftwo\fthree")
    stored = json.dumps({"path": f"file://{tmp_path}/report.txt"})
    put(simulator, webhook(), puts_out(stored), name="Build report")

    state, tasks = run_dag(FUNCTIONS / "file_dag.py")

    assert state == "success", tasks
    count_pages = load_dag(FUNCTIONS / "file_dag.py").get_task("count_pages").python_callable
    assert count_pages({"output": [json.loads(stored)]}) == 3


@pytest.mark.usefixtures("database")
def test_the_output_of_an_execution_that_airflow_did_not_start(simulator: ServiceSimulator) -> None:
    report = {**puts_out('{"orders": 3}'), "name": "Report"}
    workflow_id = put(simulator, webhook(), report)
    requests.post(f"{simulator.base_url}/webhook/w", json={}, timeout=60).raise_for_status()
    [execution] = [str(one.id) for one in held(simulator, workflow_id)]

    wait = load_dag(FUNCTIONS / "other_executions_dag.py").get_task("wait")
    result = run_task(wait, context={"dag_run": SimpleNamespace(conf={"execution_id": execution})}).return_value

    assert (result["execution_id"], result["output"]) == (execution, [{"orders": 3}])
    state, tasks = run_dag(FUNCTIONS / "other_executions_dag.py", {"execution_id": execution})
    assert state == "success", tasks


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_each_day_of_a_backfill_runs_the_workflow_for_that_day(simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), name="Import orders")

    for day in (3, 4):
        state, tasks = run_dag(FUNCTIONS / "backfill_dag.py", logical_date=datetime(2026, 1, day, tzinfo=UTC))
        assert state == "success", tasks

    days = [started_with(one)["body"] for one in held(simulator, workflow_id)]
    assert days == [{"day": "2026-01-03"}, {"day": "2026-01-04"}]


@pytest.mark.usefixtures("database")
def test_a_report_is_mailed_even_if_the_audit_fails(
    simulator: ServiceSimulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = {"title": "Old queries", "description": "d", "recommendation": "r", "location": [{"name": "x"}]}
    simulator.state.audit.reports = {"Database Risk Report": {"risk": "database", "sections": [finding]}}

    with mail_server() as (port, mails):
        extra = {"from_email": "airflow@example.com", "disable_ssl": True, "disable_tls": True}
        connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        state, tasks = run_dag(FUNCTIONS / "mail_dag.py", {"folder": str(tmp_path)})

    assert (state, states(tasks)) == ("success", {"audit": "failed", "mail": "success"})
    [mail] = mails
    [attached] = [part for part in mail.walk() if part.get_filename() == "service-audit.html"]
    assert b"Old queries" in attached.get_payload(decode=True)
