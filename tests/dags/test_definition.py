"""Airflow's rendering leaves the service's expressions alone, and still passes on the results of other tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator._samples import webhook_workflow
from scripts.dag_runner import run_dag

DAG_FILE = """
from airflow.sdk import DAG, task

from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.simulator._samples import webhook_workflow

with DAG("definitions", schedule=None) as dag:

    @task
    def exported(name):
        definition = webhook_workflow(name, name, "immediate")
        definition["nodes"][0]["notes"] = "={{ $json.body.id }}"
        return definition

    @task
    def note():
        return "={{ now }}"

    ServiceCreateOrUpdateWorkflowOperator(task_id="file", definition="flow.json")
    part = webhook_workflow("part", "part", "immediate")
    part["nodes"][0]["notes"] = note()
    ServiceCreateOrUpdateWorkflowOperator(task_id="whole", definition=exported("whole"))
    ServiceCreateOrUpdateWorkflowOperator(task_id="part", definition=part)
    ServiceCreateOrUpdateWorkflowOperator.partial(task_id="mapped").expand(
        definition=exported.override(task_id="exports").expand(name=["first", "second"])
    )
    ServiceCreateOrUpdateWorkflowOperator.partial(task_id="files").expand(definition=["one.json", "two.json"])

    @task
    def path():
        return "told.json"

    ServiceCreateOrUpdateWorkflowOperator(task_id="told", definition=path())
"""


@pytest.mark.slow
def test_expressions_and_results(client: ServiceClient, tmp_path: Path) -> None:
    path = tmp_path / "definitions.py"
    path.write_text(DAG_FILE)
    for name, file in (("file", "flow.json"), ("one", "one.json"), ("two", "two.json"), ("told", "told.json")):
        flow = webhook_workflow(name, name, "immediate")
        flow["nodes"][0]["notes"] = "={{ $json.body.id }}"
        (tmp_path / file).write_text(json.dumps(flow))

    state, runs = run_dag(path)

    assert state == "success", runs
    notes = {one.name: client.workflows.get(one.id).nodes[0]["notes"] for one in client.workflows.list()}
    assert notes == {
        "file": "={{ $json.body.id }}",
        "whole": "={{ $json.body.id }}",
        "part": "={{ now }}",
        "first": "={{ $json.body.id }}",
        "second": "={{ $json.body.id }}",
        "one": "={{ $json.body.id }}",
        "two": "={{ $json.body.id }}",
        "told": "={{ $json.body.id }}",
    }
