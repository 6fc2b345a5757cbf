"""What beside operators has arguments: its own signature and documentation name all of them."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.sensors.health import ServiceWorkflowHealthSensor
from airflow_provider_service.sensors.rows import ServiceRowSensor
from airflow_provider_service.sensors.source_control import ServiceSourceControlSensor
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from airflow_provider_service.triggers.execution import ServiceExecutionTrigger
from airflow_provider_service.triggers.health import ServiceWorkflowHealthTrigger
from airflow_provider_service.triggers.rows import ServiceRowTrigger
from airflow_provider_service.triggers.source_control import ServiceSourceControlTrigger

SENSORS = (ServiceExecutionSensor, ServiceRowSensor, ServiceSourceControlSensor, ServiceWorkflowHealthSensor)
TRIGGERS = (
    ServiceExecutionTrigger,
    ServiceExecutionEventTrigger,
    ServiceRowTrigger,
    ServiceSourceControlTrigger,
    ServiceWorkflowHealthTrigger,
)
KINDS = (*SENSORS, *TRIGGERS, ServiceNotifier)


def own_arguments(kind: type) -> set[str]:
    parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
    return {one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("kind", KINDS)
def test_its_documentation_names_every_argument(kind: type) -> None:
    described = re.findall(r"^:param (\w+):", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE)
    assert sorted(described) == sorted(own_arguments(kind))
    assert "service_conn_id" in described


@pytest.mark.parametrize("kind", SENSORS)
def test_other_fields_of_a_sensor_are_checked_when_the_dag_file_is_read(kind: Any) -> None:
    assert kind.checks.keys() >= own_arguments(kind) - set(kind.template_fields)


@pytest.mark.parametrize("kind", [kind for kind in TRIGGERS if kind is not ServiceExecutionEventTrigger])
def test_a_trigger_stores_every_argument(kind: type) -> None:
    required = {"service_conn_id": "c", "deadline": 1.0, "timeout": 60.0}
    subjects = dict.fromkeys(("execution_id", "workflow_id", "data_table_id"), "1")
    arguments = {name: value for name, value in (required | subjects).items() if name in own_arguments(kind)}
    path, stored = kind(**arguments).serialize()
    assert path == f"{kind.__module__}.{kind.__name__}"
    assert stored.keys() == own_arguments(kind)


@pytest.mark.parametrize(
    "selection",
    [
        {"workflow_id": "w"},
        {"workflow_id": ["v", "w"]},
        {"workflow_name": "Nightly", "project_id": "p"},
        {"workflow_name": ["Hourly", "Nightly"], "project_name": "Sales"},
        {"tag_id": "t"},
        {"tag_name": "prod"},
        {"project_id": "p"},
        {"all_workflows": True},
    ],
)
def test_the_event_trigger_stores_what_selects(selection: dict[str, Any]) -> None:
    path, stored = ServiceExecutionEventTrigger(**selection).serialize()
    assert path == f"{ServiceExecutionEventTrigger.__module__}.{ServiceExecutionEventTrigger.__name__}"
    always = {name: stored.pop(name) for name in ("statuses", "service_conn_id", "poll_interval")}
    assert stored == selection
    again = ServiceExecutionEventTrigger(**stored, **always)
    assert again.serialize() == (path, {**stored, **always})
