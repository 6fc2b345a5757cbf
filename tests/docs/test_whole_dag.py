"""How users test a whole DAG; the guide shows this file."""

from datetime import timedelta

import pytest

from example_dags.example_service_first import dag

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]
pytestmark = pytest.mark.usefixtures("database")


def test_the_dag_runs_the_workflow_once(service):
    service.workflow("Nightly sync", takes=timedelta(hours=2))

    run = dag.test()

    assert run.state == "success"
    service.assert_ran("Nightly sync", payload={"requested_by": run.run_id})


def test_the_dag_fails_with_the_workflow(service):
    service.workflow("Nightly sync", fails_with="The disk is full")

    assert dag.test().state == "failed"
