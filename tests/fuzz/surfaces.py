"""Every part of the provider that reads answers of the service, as calls on one that :func:`fill` has filled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.checkup import ConnectionView, examine
from airflow_provider_service._core.pages.reading import see
from airflow_provider_service._core.pages.task_view import TaskView
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.operators.bridge import ServiceInstallBridgeOperator
from airflow_provider_service.operators.credentials import ServiceUpdateCredentialOperator
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.desired_state import ServiceEnsureDataTablesOperator, ServiceEnsureTagsOperator
from airflow_provider_service.operators.execution_selections import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionsOperator,
)
from airflow_provider_service.operators.health import ServiceWorkflowHealthCheckOperator
from airflow_provider_service.operators.insights import ServiceGetInsightsOperator
from airflow_provider_service.operators.instances import (
    ServiceDeployWorkflowsOperator,
    ServiceExportWorkflowsOperator,
    ServicePromoteWorkflowsOperator,
)
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.source_control import ServicePullSourceControlOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task
from airflow_provider_service.testing._service import first_event, revived
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from airflow_provider_service.triggers.execution import ServiceExecutionTrigger
from airflow_provider_service.triggers.health import ServiceWorkflowHealthTrigger
from airflow_provider_service.triggers.rows import ServiceRowTrigger
from airflow_provider_service.triggers.source_control import ServiceSourceControlTrigger
from tests.docs.operator_examples import dag
from tests.instances.workflows import calling, node, webhook, workflow

from .commands import COMMAND_SURFACES

#: Names by which tasks find objects.
KNOWN_NAMES = {
    *("Nightly sync", "stock", "copy of stock", "STAGE", "Sales", "ana@example.com", "mail", "all", "sku", "amount")
}

N = "Nightly sync"


@dataclass(frozen=True)
class Place:
    """Where a surface runs.

    :param simulator: the service.
    :param folder: the folder below which it may write.
    :param execution_id: an execution that has failed.
    :param workflow_id: its workflow.
    """

    simulator: ServiceSimulator
    folder: Path
    execution_id: str
    workflow_id: str

    @property
    def config(self) -> ServiceConfig:
        """The connection."""
        return ServiceConfig(base_url=self.simulator.base_url, api_key=self.simulator.api_key, retry_deadline=0)


Surface = Callable[[Place], Any]


def fill(simulator: ServiceSimulator, client: ServiceClient) -> tuple[str, str]:
    """Put one of everything into the service; return the ids of a failed execution and of its workflow."""
    simulator.state.source_control.connect()
    flow = simulator.create_webhook_workflow(N, path="nightly", respond_with_id=True)
    project = client.projects.create("Sales")
    client.tags.create("all")
    credential = client.credentials.create("mail", "httpHeaderAuth", {"name": "X", "value": "y"})
    client.variables.create("STAGE", "test")
    client.variables.create("OWN", "1", project_id=project.id)
    client.folders.create(project.id, "Reports")
    client.users.create([{"email": "ana@example.com"}])
    for name in ("stock", "copy of stock"):
        columns = [{"name": "sku", "type": "string"}, {"name": "amount", "type": "number"}]
        table = client.data_tables.create(name, columns)
        client.data_table_rows.insert(table.id, [{"sku": "c", "amount": 3}, {"sku": "d", "amount": None}])
    uses = {"httpHeaderAuth": {"id": credential.id, "name": "mail"}}
    code = node("Code", "code", {"jsCode": "const a = 1;\nreturn [];"}, credentials=uses)
    for _ in range(2):
        made = workflow("twin", webhook("twin"), code)
        client.workflows.create(made["name"], made["nodes"], made["connections"], {})
    client.workflows.update_tags(flow["id"], [one.id for one in client.tags.list()])
    for status in ("success", "running", "waiting", "crashed"):
        simulator.start_execution(flow["id"], status=status, age=100)
    return simulator.start_execution(flow["id"], status="error"), flow["id"]


def report(operator: type[Any], ending: str, **arguments: Any) -> Surface:
    """A task that writes a report."""
    return task(operator, report_path=f"{{{{ params.folder }}}}/report{ending}", **arguments)


def task(operator: type[Any], **arguments: Any) -> Surface:
    """A task of an operator or a sensor."""
    made = operator(task_id="task", **arguments)

    def run(place: Place) -> Any:
        return run_task(made, params={"execution_id": place.execution_id, "folder": str(place.folder)})

    run.kinds = (operator,)  # type: ignore[attr-defined]
    return run


def trigger(kind: type[Any], **arguments: Any) -> Surface:
    """A trigger, until its first event."""

    def run(place: Place) -> Any:
        ids = {"execution_id": place.execution_id} if kind is ServiceExecutionTrigger else {}

        async def first() -> Any:
            return await asyncio.wait_for(first_event(revived(kind(**ids, **arguments))), 20)

        return asyncio.run(first())

    run.kinds = (kind,)  # type: ignore[attr-defined]
    return run


def example(operator: Any) -> Surface:
    """The example of an operator in the API reference."""

    def run(place: Place) -> Any:
        return run_task(operator, params={"execution_id": place.execution_id, "folder": str(place.folder)})

    run.kinds = (type(operator),)  # type: ignore[attr-defined]
    return run


def page_of_execution(place: Place) -> str:
    """The tab of a task's execution."""
    config = place.config
    seen = see(lambda: config, place.execution_id, None, base_url=config.base_url, show_data=True)
    view = TaskView("dag", "run", "task", -1, "failed", is_ours=True, execution_id=place.execution_id)
    return rendering.page(rendering.task_part(view, seen), "task", "/service-pages")


def page_of_connection(place: Place) -> str:
    """The page of a connection."""
    findings = list(examine(place.config))
    view = ConnectionView("service", findings, place.config.base_url, waits=(), runs=(), made_at=datetime.now(UTC))
    return rendering.page(rendering.connection_part(view, airflow=""), "Connection", "/service-pages")


def backup_and_restore(place: Place) -> Any:
    """A backup, and then a restore of it."""
    path = str(place.folder / "backup.zip")
    task(ServiceBackupOperator, path=path)(place)
    return task(ServiceRestoreOperator, path=path, on_conflict="update")(place)


def export_and_deploy(place: Place) -> Any:
    """An export, and then a deployment of it."""
    path = str(place.folder / "export")
    task(ServiceExportWorkflowsOperator, path=path, code_files=True, pinned_data=True)(place)
    return task(ServiceDeployWorkflowsOperator, source=path)(place)


def removal(place: Place) -> Any:
    """A deployment, and then another one that archives what has left."""
    owned = {"deployment_name": "sales", "archive_missing": True}
    left = workflow("left", webhook("left"), active=True)
    task(ServiceDeployWorkflowsOperator, source=[CALLER, left], **owned)(place)
    return task(ServiceDeployWorkflowsOperator, source=[CALLER], **owned)(place)


def hook_calls(place: Place) -> Any:
    """What the hook offers besides the operators, with a connection of n8n."""
    with ServiceHook("n8n") as hook:
        hook.data_tables.load([{"sku": "c", "amount": 4}], data_table_name="stock", key_columns="sku")
        frame = hook.data_tables.to_pandas(data_table_name="stock")
        return frame, hook.run_workflow(workflow_name=N, timeout=5, return_output="last_node"), hook.test_connection()


def notification(place: Place) -> Any:
    """A workflow that is notified of a task."""
    return ServiceNotifier(workflow_name=N, details={"a": 1}).notify({})


backup_and_restore.kinds = (ServiceBackupOperator, ServiceRestoreOperator)  # type: ignore[attr-defined]


def event_trigger(place: Place) -> None:
    """The trigger that watches all executions, until one has ended or nothing more can happen."""
    made = revived(ServiceExecutionEventTrigger(all_workflows=True, poll_interval=0.05))
    running = place.simulator.start_execution(place.workflow_id)

    async def watch() -> None:
        waiting = asyncio.ensure_future(first_event(made))
        await asyncio.sleep(0.2)
        place.simulator.finish_execution(running)
        with suppress(TimeoutError):
            await asyncio.wait_for(waiting, 0.5)

    asyncio.run(watch())


event_trigger.kinds = (ServiceExecutionEventTrigger,)  # type: ignore[attr-defined]


DEADLINE = {"deadline": datetime(2100, 1, 1, tzinfo=UTC).timestamp(), "timeout": timedelta(seconds=5)}
CALLER = workflow("caller", webhook("caller"), calling(N), tags=["all"], active=True)
WAIT = {"timeout": 5, "poll_interval": 1}
HEALTH = {"all_workflows": True, "max_failure_rate": 1.0, "max_duration_p95": 10**6, "max_age_of_success": 3600}

SURFACES: dict[str, Surface] = {
    **{f"{type(one).__name__}, {one.task_id}": example(one) for one in dag.tasks},
    "audit": report(ServiceGenerateAuditOperator, ".html"),
    "insights": report(ServiceGetInsightsOperator, ".md"),
    "health check": report(ServiceWorkflowHealthCheckOperator, ".html", **HEALTH),
    "plan": report(ServiceDeployWorkflowsOperator, ".json", source=[CALLER], preview=True),
    "deployment": task(ServiceDeployWorkflowsOperator, source=[CALLER]),
    "promotion": task(
        ServicePromoteWorkflowsOperator,
        source_conn_id="service_default",
        service_conn_id="service_default",
        tag_name="all",
    ),
    "backup": report(ServiceBackupOperator, ".md", path="{{ params.folder }}/backup.zip"),
    "backup and restore": backup_and_restore,
    "export": task(ServiceExportWorkflowsOperator, path="{{ params.folder }}", code_files=True),
    "export and deployment": export_and_deploy,
    "bridge": task(ServiceInstallBridgeOperator),
    "credential": task(
        ServiceUpdateCredentialOperator, credential_name="mail", credential_type="httpHeaderAuth", name="mail 2"
    ),
    "new table": task(ServiceCreateDataTableOperator, name="new", columns={"a": "string"}),
    "workflow": task(ServiceCreateOrUpdateWorkflowOperator, definition={**CALLER, "name": N}),
    "deleted executions": task(ServiceDeleteExecutionsOperator, all_workflows=True, status=["error"]),
    "stopped executions": task(ServiceStopExecutionsOperator, all_workflows=True, status=["running"]),
    "read rows": task(ServiceReadRowsOperator, data_table_name="stock", path="{{ params.folder }}/rows.csv"),
    "returned rows": task(ServiceReadRowsOperator, data_table_name="stock"),
    "upserted rows": task(
        ServiceUpsertRowsOperator, data_table_name="stock", rows=[{"sku": "c", "amount": 4}], key_columns="sku"
    ),
    "run": task(
        ServiceRunWorkflowOperator,
        workflow_name=N,
        return_output="last_node",
        output_path="{{ params.folder }}/output.json",
        **WAIT,
    ),
    "deferred run": task(ServiceRunWorkflowOperator, workflow_name=N, deferrable=True, **WAIT),
    "pull": task(ServicePullSourceControlOperator),
    "tables": task(ServiceEnsureDataTablesOperator, data_tables={"stock": {"sku": "string", "more": "number"}}),
    "tags": task(ServiceEnsureTagsOperator, tags=["all", "more"], prune=True, prune_prefix="a"),
    "activation": task(ServiceActivateWorkflowOperator, workflow_name=N),
    "sensor": task(ServiceExecutionSensor, execution_id="{{ params.execution_id }}", deferrable=True, soft_fail=True),
    "execution trigger": trigger(
        ServiceExecutionTrigger, service_conn_id="service_default", **DEADLINE, poll_interval=1
    ),
    "health trigger": trigger(ServiceWorkflowHealthTrigger, service_conn_id="service_default", **DEADLINE, **HEALTH),
    "row trigger": trigger(ServiceRowTrigger, service_conn_id="service_default", data_table_name="stock", **DEADLINE),
    "source control trigger": trigger(ServiceSourceControlTrigger, service_conn_id="service_default", **DEADLINE),
    "event trigger": event_trigger,
    "removal": removal,
    "hook": hook_calls,
    "notification": notification,
    **COMMAND_SURFACES,
    "page of an execution": page_of_execution,
    "page of a connection": page_of_connection,
}
