"""Features around executions: how they are started, what is done with them, what waits for them, and their pages."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_service._core.pages.checkup import examine, verdict
from airflow_provider_service._core.pages.reading import see
from airflow_provider_service.client._execution_data import starting_items
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.decorators.run_workflow import service_workflow_task
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators.bridge import ServiceInstallBridgeOperator
from airflow_provider_service.operators.execution_selections import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionsOperator,
)
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator, ServiceStopExecutionOperator
from airflow_provider_service.operators.health import ServiceWorkflowHealthCheckOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.sensors.health import ServiceWorkflowHealthSensor
from airflow_provider_service.testing import run_task
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from tests.conformance.expecting import unique
from tests.conformance.mcp_workflows import chat, form, manual, schedule, sub_workflow
from tests.conformance.workbench import done, stop_and_error, wait, webhook
from tests.polling import wait_until

from .kit import OPERATOR, OTHER, PAGE, START, WAIT, Kit, feature

MCP = "MCP endpoint"


@feature(START, "webhook")
def _webhook(kit: Kit) -> None:
    kit.ran()


@feature(START, "webhook, deferred")
def _webhook_deferred(kit: Kit) -> None:
    kit.ran(deferrable=True)


@feature(START, "bridge: sub-workflow")
def _bridge(kit: Kit) -> None:
    kit.ran(sub_workflow(), done(), payload={"n": 1})


@feature(START, "MCP: schedule", MCP)
def _mcp_schedule(kit: Kit) -> None:
    kit.ran(schedule(), done(), enable_mcp=True)


@feature(START, "MCP: form", MCP)
def _mcp_form(kit: Kit) -> None:
    kit.ran(form(), done(), enable_mcp=True, payload={"name": "Ann"})


@feature(START, "MCP: chat", MCP)
def _mcp_chat(kit: Kit) -> None:
    kit.ran(chat(), done(), enable_mcp=True, payload="Hello")


@feature(START, 'MCP: draft (`mode="manual"`)', MCP)
def _mcp_draft(kit: Kit) -> None:
    kit.ran(manual(), done(), enable_mcp=True, mode="manual")


@feature(START, "`@task.service_workflow`")
def _decorator(kit: Kit) -> None:
    made = kit.bench.create(webhook(unique("hook")), done())

    def payload() -> dict[str, int]:
        return {"n": 1}

    with DAG("features", schedule=None):
        task = service_workflow_task(payload, workflow_id=made.id, activate=True, **WAIT)()
    assert run_task(task).return_value[0]["body"]["n"] == 1


@feature(OPERATOR, ServiceRunWorkflowOperator)
def _run(kit: Kit) -> None:
    made = kit.bench.create(webhook(unique("hook")), done())
    found = kit.run(
        ServiceRunWorkflowOperator, workflow_name=made.name, activate=True, return_output="last_node", **WAIT
    )
    assert len(found["output"]) == 1


@feature(OPERATOR, ServiceInstallBridgeOperator)
def _install_bridge(kit: Kit) -> None:
    assert kit.run(ServiceInstallBridgeOperator)["outcome"] in ("created", "unchanged")
    assert kit.run(ServiceInstallBridgeOperator)["outcome"] == "unchanged"


@feature(OPERATOR, ServiceRetryExecutionOperator)
def _retry(kit: Kit) -> None:
    made = kit.bench.publish(webhook(unique("hook")), stop_and_error())
    execution_id = kit.bench.start(made)
    kit.bench.finished(execution_id)
    with pytest.raises(ServiceExecutionFailedError, match="at node 'Stop'"):
        kit.run(ServiceRetryExecutionOperator, execution_id=execution_id, **WAIT)
    retry, *_ = kit.service.client.executions.list(workflow_id=made.id)
    assert str(retry.retry_of) == execution_id


def _running(kit: Kit) -> tuple[str, str]:
    """The ids of an execution that goes on for a while, and of its workflow."""
    made = kit.bench.publish(webhook(unique("hook")), wait(50), done())
    execution_id = kit.bench.start(made)
    kit.bench.reaches(execution_id, "running")
    return execution_id, made.id


@feature(OPERATOR, ServiceStopExecutionOperator, "stop_execution")
def _stop(kit: Kit) -> None:
    execution_id, _ = _running(kit)
    kit.run(ServiceStopExecutionOperator, execution_id=execution_id, **WAIT)
    assert kit.service.client.executions.get(execution_id).status == "canceled"


@feature(OPERATOR, ServiceStopExecutionsOperator, "stop_many_executions")
def _stop_many(kit: Kit) -> None:
    execution_id, workflow_id = _running(kit)
    kit.run(ServiceStopExecutionsOperator, workflow_id=workflow_id, status=["running"])
    kit.bench.reaches(execution_id, "canceled")


@feature(OPERATOR, ServiceDeleteExecutionsOperator)
def _delete(kit: Kit) -> None:
    execution_id = kit.ran()
    kit.run(ServiceDeleteExecutionsOperator, execution_ids=[execution_id])
    assert kit.run(ServiceDeleteExecutionsOperator, execution_ids=[execution_id], if_missing="ignore") is not None


@feature(OPERATOR, ServiceWorkflowHealthCheckOperator)
def _health(kit: Kit) -> None:
    workflow_id = kit.service.client.executions.get(kit.ran()).workflow_id
    kit.run(ServiceWorkflowHealthCheckOperator, workflow_id=workflow_id, min_runs=1, max_failure_rate=0)


@feature(OTHER, ServiceExecutionSensor)
def _sensor(kit: Kit) -> None:
    execution_id = kit.ran()
    kit.run(ServiceExecutionSensor, execution_id=execution_id, poke_interval=0.5)
    kit.run(ServiceExecutionSensor, execution_id=execution_id, poke_interval=0.5, deferrable=True)


@feature(OTHER, ServiceWorkflowHealthSensor)
def _health_sensor(kit: Kit) -> None:
    workflow_id = kit.service.client.executions.get(kit.ran()).workflow_id
    kit.run(ServiceWorkflowHealthSensor, workflow_id=workflow_id, min_runs=1, poke_interval=0.5)


@feature(OTHER, ServiceExecutionEventTrigger)
def _event(kit: Kit) -> None:
    made = kit.bench.publish(webhook(unique("hook")), done())

    async def first() -> Any:
        events = ServiceExecutionEventTrigger(workflow_id=made.id, poll_interval=0.5).run()
        event = asyncio.ensure_future(anext(events))
        await asyncio.sleep(2)
        await asyncio.to_thread(kit.bench.call, made)
        found = await asyncio.wait_for(event, 60)
        await events.aclose()
        return found.payload

    assert asyncio.run(first())["workflow_id"] == made.id


@feature(OTHER, ServiceNotifier)
def _notifier(kit: Kit) -> None:
    made = kit.bench.create(webhook(unique("hook")), done())
    ended = SimpleNamespace(dag_id="nightly", run_id="manual__1", state="failed")
    ServiceNotifier(workflow_id=made.id, message="it failed")({"dag": DAG("nightly", schedule=None), "dag_run": ended})

    def notices() -> list[Any]:
        kit.service.pass_time(1)
        listed = kit.service.client.executions.list(workflow_id=made.id, include_data=True)
        return [next(starting_items(one))["body"]["message"] for one in listed]

    assert wait_until(notices, what="the execution of the notice") == ["it failed"]


@feature(PAGE, "page of a task: its execution, drawn")
def _page(kit: Kit) -> None:
    execution_id = kit.ran()
    seen = see(lambda: kit.config, execution_id, None, base_url=kit.config.base_url, show_data=True)
    assert seen.error is None
    assert seen.view is not None
    assert seen.view.drawing is not None
    assert [node.state for node in seen.view.nodes] == ["succeeded"] * 2


@feature(PAGE, "page of a connection, and `doctor`")
def _doctor(kit: Kit) -> None:
    findings = [one for one in examine(kit.config) if one.subject != "MCP" or not kit.service.differs(MCP)]
    assert verdict(findings).grade == "ok", findings
