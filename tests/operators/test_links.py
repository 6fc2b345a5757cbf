"""The buttons of a task: Airflow is not asked for an address that the task is known not to have."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, XCom

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import FakeTaskInstance

STORED = "https://service.example.com/stored"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the XComs that Airflow is asked for."""
    keys: list[str] = []

    def get_value(*, ti_key: Any, key: str) -> str:
        keys.append(key)
        return STORED

    monkeypatch.setattr(XCom, "get_value", get_value)
    return keys


def links(task: Any) -> dict[str, str]:
    return {one.name: one.get_link(task, ti_key=FakeTaskInstance()) for one in task.operator_extra_links}


@pytest.mark.usefixtures("simulator", "task_log")
@pytest.mark.parametrize(
    "task",
    [
        ServiceRunWorkflowOperator(task_id="task", workflow_name="none"),
        ServiceExecutionSensor(task_id="task", execution_id="none"),
    ],
)
def test_after_a_failed_start_airflow_is_asked_for_nothing(task: Any, asked: list[str]) -> None:
    assert set(links(task).values()) == {STORED}
    asked.clear()
    with pytest.raises((AirflowException, ServiceError)):
        task.execute({"ti": FakeTaskInstance(), "task": task})
    assert (set(links(task).values()), asked) == ({""}, [])


def test_what_the_task_has_pushed_is_known(simulator: ServiceSimulator, task_log: None, asked: list[str]) -> None:
    workflow = simulator.create_webhook_workflow("w", path="w")["id"]
    task = ServiceRunWorkflowOperator(task_id="task", workflow_id=workflow, wait_for_completion=False)
    task.execute({"ti": FakeTaskInstance(), "task": task})
    assert links(task) == {
        "Execution": f"{simulator.base_url}/workflow/{workflow}/executions/1",
        "Workflow": f"{simulator.base_url}/workflow/{workflow}",
    }
    assert asked == []


class BusyTaskInstance(FakeTaskInstance):
    """Airflow refuses the first push of each link, as it does while it writes those of a cleared attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def xcom_push(self, key: str, value: Any) -> None:
        if key.startswith("_link_") and key not in self.refused:
            self.refused.append(key)
            raise RuntimeError("API_SERVER_ERROR: {'status_code': 409, 'reason': 'Unique constraint violation'}")
        super().xcom_push(key, value)


def test_a_task_does_not_fail_while_airflow_writes_the_links_of_an_earlier_attempt(
    simulator: ServiceSimulator, task_log: None
) -> None:
    workflow, ti = simulator.create_webhook_workflow("w", path="w")["id"], BusyTaskInstance()
    task = ServiceRunWorkflowOperator(task_id="task", workflow_id=workflow, wait_for_completion=False)
    task.execute({"ti": ti, "task": task})
    assert {key: ti.pushed[key] for key in ti.refused} == {
        "_link_ServiceWorkflowLink": f"{simulator.base_url}/workflow/{workflow}",
        "_link_ServiceExecutionLink": f"{simulator.base_url}/workflow/{workflow}/executions/1",
    }
