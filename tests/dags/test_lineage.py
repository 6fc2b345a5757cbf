"""Tasks that run with the real OpenLineage provider: the events that its file transport has written, and the asset."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.assets.service import namespace_of
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._lookup import get_workflow
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.workflows import DONE, FAIL, put, wait, webhook

pytestmark = pytest.mark.real_time  # a process of its own waits

ROOT = Path(__file__).resolve().parent.parent.parent
DAG_FILE = ROOT / "tests" / "dags" / "lineage" / "lineage_dag.py"
PROGRAM = (
    "import json, pathlib, sys; from scripts.dag_runner import run_dag; "
    "print(run_dag(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])))"
)


@pytest.mark.slow
def test_what_the_real_provider_writes_down(simulator: ServiceSimulator, client: ServiceClient, tmp_path: Path) -> None:
    columns = [{"name": "sku", "type": "string"}, {"name": "stock", "type": "number"}]
    table = client.data_tables.create("stock", columns)
    put(simulator, webhook(), DONE, name="works")
    put(simulator, webhook("v"), wait(2), FAIL, name="fails")  # it is still running when the task first looks
    written, exported = tmp_path / "events.jsonl", tmp_path / "stock.csv"
    transport = {"type": "file", "log_file_path": str(written), "append": True}

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM,
            str(DAG_FILE),
            json.dumps({"path": str(exported)}),
        ],
        env={
            **os.environ,
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAG_FILE.parent),
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "non-valid metadata" not in done.stdout + done.stderr
    events = [json.loads(line) for line in written.read_text().splitlines()]
    own = namespace_of(simulator.base_url)
    table_name = f"data_tables/{table.id}"

    complete = the(events, "lineage.write", "COMPLETE")
    [output] = complete["outputs"]
    assert (output["namespace"], output["name"]) == (own, table_name)
    assert [(one["name"], one["type"]) for one in output["facets"]["schema"]["fields"]] == [
        ("sku", "string"),
        ("stock", "number"),
    ]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1

    complete = the(events, "lineage.export", "COMPLETE")
    assert [(one["namespace"], one["name"]) for one in complete["inputs"]] == [(own, table_name)]
    assert [(one["namespace"], one["name"]) for one in complete["outputs"]] == [("file", str(exported))]

    for task_id, name, end in (("run", "works", "COMPLETE"), ("deferred", "fails", "FAIL")):
        job = f"workflows/{get_workflow(client, name).id}"
        task_end = the(events, f"lineage.{task_id}", end)
        start, ended = the(events, job, "START"), the(events, job, end)
        assert start["job"]["namespace"] == own
        assert start["run"]["runId"] == ended["run"]["runId"]
        assert start["eventTime"] <= ended["eventTime"]
        parent = ended["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == task_end["run"]["runId"]
        assert (parent["job"]["namespace"], parent["job"]["name"]) == ("default", f"lineage.{task_id}")
        execution_id = task_end["run"]["facets"]["externalQuery"]["externalQueryId"]
        assert client.executions.get(execution_id).workflow_id == get_workflow(client, name).id
        assert header(client, execution_id, "openlineage-parent-id") == (
            f"default/lineage.{task_id}/{task_end['run']['runId']}"
        )
        assert header(client, execution_id, "openlineage-root-parent-id").startswith("default/lineage/")

    with closing(sqlite3.connect(Path(os.environ["AIRFLOW_HOME"]) / "airflow.db", timeout=60)) as database:
        emitted = database.execute(
            "SELECT asset.uri, asset_event.extra FROM asset_event JOIN asset ON asset.id = asset_event.asset_id"
        ).fetchall()
    assert [(uri, json.loads(extra)["inserted"]) for uri, extra in emitted if uri == f"{own}/{table_name}"] == [
        (f"{own}/{table_name}", 1)
    ]


def the(events: list[dict[str, Any]], job: str, kind: str) -> dict[str, Any]:
    """The only event of a kind of a job."""
    [event] = [one for one in events if one["job"]["name"] == job and one["eventType"] == kind]
    return event


def header(client: ServiceClient, execution_id: str, name: str) -> str:
    """A header of the call that started an execution."""
    data = json.dumps(client.executions.get(execution_id, include_data=True).to_wire())
    headers = json.loads(data)["data"]["resultData"]["runData"]["Webhook"][0]["data"]["main"][0][0]["json"]["headers"]
    return str(headers.get(name, ""))
