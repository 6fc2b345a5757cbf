"""How a user tests a DAG of their own; the README shows this file."""

import pytest
from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

pytest_plugins = ["airflow_provider_service.simulator.pytest_plugin"]


class TaskInstance:
    """As much of a task instance as an operator needs."""

    dag_id, run_id, task_id, map_index, try_number, max_tries = "my_dag", "test", "sync", -1, 1, 0

    def xcom_push(self, key, value): ...


def test_sync_fails_with_the_workflow(service_simulator, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", service_simulator.connection_json())
    service_simulator.create_webhook_workflow("Nightly sync", path="nightly", behaviour="failing", seconds=0)

    with DAG("my_dag", schedule=None):
        sync = ServiceRunWorkflowOperator(task_id="sync", workflow_name="Nightly sync", poll_interval=0.1)

    with pytest.raises(Exception, match="ended with status 'error' at node"):
        sync.execute({"ti": TaskInstance(), "task": sync})
