"""Definitions in files: which files a task reads, and its errors for the others."""

from __future__ import annotations

import json
import os

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, literal

from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.simulator._samples import webhook_workflow


@pytest.mark.parametrize("name", ["nope.json", "/no/such/nope.json"])
def test_a_missing_file_is_reported(execute, simulator, name):
    with pytest.raises(AirflowFailException, match=f"definition: there is no file '{name}'; a relative path starts"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=name)
    assert not simulator.requests


def test_a_file_is_found_by_its_absolute_path(execute, tmp_path):
    (tmp_path / "flow.json").write_text(json.dumps(webhook_workflow("päth", "path", "immediate")), encoding="utf-8")
    assert execute(ServiceCreateOrUpdateWorkflowOperator, definition=str(tmp_path / "flow.json"))["name"] == "päth"


def test_a_file_that_is_not_text_is_reported(execute, simulator, tmp_path):
    (tmp_path / "flow.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(AirflowFailException, match=r"the file '.*flow\.json' is not UTF-8 text"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=str(tmp_path / "flow.json"))
    assert not simulator.requests


def test_a_path_that_the_system_refuses_is_reported(execute, simulator):
    with pytest.raises(AirflowFailException, match=f"cannot be read: {os.strerror(36)}"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=f"/{'x' * 5000}.json")
    assert not simulator.requests


@pytest.mark.parametrize("kind", ["absolute", "relative", "link"])
def test_output_of_another_task_cannot_name_a_file_outside_the_folders_of_the_dag(kind, tmp_path, simulator):
    secret, folder = tmp_path / "secret.json", tmp_path / "dags"
    folder.mkdir()
    secret.write_text('{"password": "s3cret"}')
    (folder / "link.json").symlink_to(secret)
    path = {"absolute": str(secret), "relative": "../secret.json", "link": "link.json"}[kind]
    with DAG("dag", schedule=None, template_searchpath=[str(folder)]):
        task = ServiceCreateOrUpdateWorkflowOperator(task_id="task", definition=literal(path))
    task.resolve_template_files()

    with pytest.raises(AirflowFailException, match="is outside the DAG's folder and its template_searchpath") as caught:
        task.render_template_fields({"task": task})
    assert "s3cret" not in str(caught.value)
