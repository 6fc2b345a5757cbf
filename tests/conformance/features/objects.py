"""Features around the objects of an instance: workflows, tags, credentials and others, except data tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.operators.community_packages import ServiceInstallCommunityPackageOperator
from airflow_provider_service.operators.credentials import (
    ServiceCreateCredentialOperator,
    ServiceUpdateCredentialOperator,
)
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureProjectsOperator,
    ServiceEnsureTagsOperator,
    ServiceEnsureVariablesOperator,
)
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.operators.insights import ServiceGetInsightsOperator
from airflow_provider_service.operators.instances import (
    ServiceDeployWorkflowsOperator,
    ServiceExportWorkflowsOperator,
    ServicePromoteWorkflowsOperator,
)
from airflow_provider_service.operators.source_control import (
    ServicePullSourceControlOperator,
    ServicePushSourceControlOperator,
)
from airflow_provider_service.operators.tags import ServiceCreateTagOperator
from airflow_provider_service.operators.users import ServiceInviteUsersOperator
from airflow_provider_service.operators.variables import (
    ServiceCreateVariableOperator,
    ServiceDeleteVariableOperator,
    ServiceUpdateVariableOperator,
)
from airflow_provider_service.operators.workflows import (
    ServiceActivateWorkflowOperator,
    ServiceArchiveWorkflowOperator,
    ServiceDeactivateWorkflowOperator,
    ServiceSetWorkflowTagsOperator,
    ServiceTransferWorkflowOperator,
    ServiceUnarchiveWorkflowOperator,
)
from airflow_provider_service.sensors.source_control import ServiceSourceControlSensor
from tests.conformance.differences import REFUSING_ONLY
from tests.conformance.expecting import unique
from tests.conformance.workbench import done, webhook
from tests.instances.workflows import workflow

from .kit import OPERATOR, OTHER, Kit, feature

# ---------------------------------------------------------------- workflows


@feature(OPERATOR, ServiceActivateWorkflowOperator)
def _activate(kit: Kit) -> None:
    made = kit.bench.create()
    kit.run(ServiceActivateWorkflowOperator, workflow_id=made.id)
    assert kit.service.client.workflows.get(made.id).active


@feature(OPERATOR, ServiceDeactivateWorkflowOperator)
def _deactivate(kit: Kit) -> None:
    made = kit.bench.publish()
    kit.run(ServiceDeactivateWorkflowOperator, workflow_id=made.id)
    assert not kit.service.client.workflows.get(made.id).active


@feature(OPERATOR, ServiceArchiveWorkflowOperator, "archive_workflow")
def _archive(kit: Kit) -> None:
    made = kit.bench.create()
    kit.run(ServiceArchiveWorkflowOperator, workflow_id=made.id)
    assert kit.service.client.workflows.get(made.id).is_archived


@feature(OPERATOR, ServiceUnarchiveWorkflowOperator, "archive_workflow", "unarchive_workflow")
def _unarchive(kit: Kit) -> None:
    made = kit.bench.create()
    kit.run(ServiceArchiveWorkflowOperator, workflow_id=made.id)
    kit.run(ServiceUnarchiveWorkflowOperator, workflow_id=made.id)
    assert not kit.service.client.workflows.get(made.id).is_archived


def _definition(name: str | None = None) -> dict[str, Any]:
    return workflow(name or unique("deployed"), webhook(unique("hook")), done(), active=True)


def _remove(kit: Kit, *names: str) -> None:
    for name in names:
        for one in kit.service.client.workflows.list(name=name):
            kit.bench.remove(one.id)


@feature(OPERATOR, ServiceCreateOrUpdateWorkflowOperator)
def _create_or_update(kit: Kit) -> None:
    definition = _definition()
    outcomes = [kit.run(ServiceCreateOrUpdateWorkflowOperator, definition=definition)["outcome"] for _ in range(2)]
    _remove(kit, definition["name"])
    assert outcomes == ["created", "unchanged"]


@feature(OPERATOR, ServiceDeployWorkflowsOperator)
def _deploy(kit: Kit) -> None:
    definition = _definition()
    (kit.folder / "one.json").write_text(json.dumps(definition))
    outcomes = [kit.run(ServiceDeployWorkflowsOperator, source=str(kit.folder))["outcome"] for _ in range(2)]
    _remove(kit, definition["name"])
    assert outcomes == ["deployed", "unchanged"]


@feature(OPERATOR, ServicePromoteWorkflowsOperator)
def _promote(kit: Kit) -> None:
    made = kit.bench.create()
    found = kit.run(ServicePromoteWorkflowsOperator, source_conn_id="service_default", workflow_names=[made.name])
    assert found["unchanged"] == [made.name]


@feature(OPERATOR, ServiceExportWorkflowsOperator)
def _export(kit: Kit) -> None:
    made = kit.bench.create()
    kit.run(ServiceExportWorkflowsOperator, path=str(kit.folder / "exported"), workflow_names=[made.name])
    assert len(list((kit.folder / "exported").iterdir())) == 1


@feature(OPERATOR, ServiceBackupOperator)
def _backup(kit: Kit) -> None:
    kit.bench.create()
    kit.run(ServiceBackupOperator, path=str(kit.folder / "backup.zip"))
    assert (kit.folder / "backup.zip").exists()


@feature(OPERATOR, ServiceRestoreOperator)
def _restore(kit: Kit) -> None:
    made = kit.bench.create()
    kit.run(ServiceBackupOperator, path=str(kit.folder / "backup.zip"))
    kit.run(ServiceRestoreOperator, path=str(kit.folder / "backup.zip"))
    assert [one.id for one in kit.service.client.workflows.list(name=made.name)] == [made.id]


@feature(OPERATOR, ServiceTransferWorkflowOperator, "list_projects")
def _transfer(kit: Kit) -> None:
    made, project = kit.bench.create(), kit.service.client.projects.create(unique("project"))
    kit.run(ServiceTransferWorkflowOperator, workflow_id=made.id, destination_project_name=project.name)
    kit.bench.remove(made.id)
    kit.service.client.projects.delete(project.id)


@feature(OPERATOR, ServiceSetWorkflowTagsOperator)
def _set_tags(kit: Kit) -> None:
    made, name = kit.bench.create(), unique("tag")[:24]
    for mode, tags in (("set", [name]), ("add", [name]), ("remove", [])):
        kit.run(ServiceSetWorkflowTagsOperator, workflow_id=made.id, tags=[name], mode=mode)
        assert [tag.name for tag in kit.service.client.workflows.get(made.id).tags or ()] == tags


# ---------------------------------------------------------------- the rest of an instance


@feature(OPERATOR, ServiceCreateTagOperator)
def _tag(kit: Kit) -> None:
    name = unique("tag")[:24]
    for _ in range(2):
        kit.run(ServiceCreateTagOperator, name=name)
    _delete_tag(kit, name)


@feature(OPERATOR, ServiceEnsureTagsOperator)
def _ensure_tags(kit: Kit) -> None:
    name = unique("tag")[:24]
    for _ in range(2):
        kit.run(ServiceEnsureTagsOperator, tags=[name])
    _delete_tag(kit, name)


def _delete_tag(kit: Kit, name: str) -> None:
    [tag] = [one for one in kit.service.client.tags.list() if one.name == name]
    kit.service.client.tags.delete(tag.id)


@feature(OPERATOR, ServiceCreateVariableOperator, "create_variable")
def _create_variable(kit: Kit) -> None:
    key = unique("v").replace("-", "_")
    kit.run(ServiceCreateVariableOperator, key=key, value="1")
    kit.run(ServiceDeleteVariableOperator, key=key)


@feature(OPERATOR, ServiceUpdateVariableOperator, "update_variable")
def _update_variable(kit: Kit) -> None:
    key = unique("v").replace("-", "_")
    if not kit.service.is_gated("create_variable"):
        kit.run(ServiceCreateVariableOperator, key=key, value="1")
    kit.run(ServiceUpdateVariableOperator, key=key, value="2")
    kit.run(ServiceDeleteVariableOperator, key=key)


@feature(OPERATOR, ServiceDeleteVariableOperator, "delete_variable")
def _delete_variable(kit: Kit) -> None:
    kit.run(ServiceDeleteVariableOperator, key=unique("v").replace("-", "_"), if_missing="ignore")


@feature(OPERATOR, ServiceEnsureVariablesOperator, "create_variable")
def _ensure_variables(kit: Kit) -> None:
    key = unique("v").replace("-", "_")
    kit.run(ServiceEnsureVariablesOperator, variables={key: "1"})
    kit.run(ServiceDeleteVariableOperator, key=key)


@feature(OPERATOR, ServiceEnsureProjectsOperator, "create_project")
def _ensure_projects(kit: Kit) -> None:
    name = unique("project")
    kit.run(ServiceEnsureProjectsOperator, projects={name: {}})
    kit.run(ServiceEnsureProjectsOperator, projects={}, prune=True, prune_names=[name])


SECRET = {"name": "X-Key", "value": "one"}


@feature(OPERATOR, ServiceCreateCredentialOperator, "list_credentials")
def _create_credential(kit: Kit) -> None:
    found = kit.run(
        ServiceCreateCredentialOperator,
        name=unique("credential"),
        credential_type="httpHeaderAuth",
        data=SECRET,
        if_exists="fail",
    )
    kit.service.client.credentials.delete(found["credential_id"])


@feature(OPERATOR, ServiceUpdateCredentialOperator, "update_credential")
def _update_credential(kit: Kit) -> None:
    made = kit.service.client.credentials.create(unique("credential"), "httpHeaderAuth", SECRET)
    try:
        kit.run(ServiceUpdateCredentialOperator, credential_id=made.id, data={**SECRET, "value": "two"})
    finally:
        kit.service.client.credentials.delete(made.id)


@feature(OPERATOR, ServiceInviteUsersOperator)
def _invite(kit: Kit) -> None:
    email = f"{unique()}@example.com"
    kit.run(ServiceInviteUsersOperator, users=[email])
    kit.service.client.users.delete(str(kit.service.client.users.get(email).id), delete_workflows=True)


@feature(OPERATOR, ServiceInstallCommunityPackageOperator, "install_community_package")
def _install_package(kit: Kit) -> str | None:
    if kit.service.differs("install_community_package"):
        with pytest.raises(AirflowFailException, match="is not vetted"):
            kit.run(ServiceInstallCommunityPackageOperator, name="n8n-nodes-example", verify=True)
        return REFUSING_ONLY["install_community_package"]
    kit.run(ServiceInstallCommunityPackageOperator, name="n8n-nodes-example")
    kit.service.client.community_packages.uninstall("n8n-nodes-example")
    return None


@feature(OPERATOR, ServicePullSourceControlOperator, "pull_source_control")
def _pull(kit: Kit) -> None:
    kit.run(ServicePullSourceControlOperator)


@feature(OPERATOR, ServicePushSourceControlOperator, "push_source_control")
def _push(kit: Kit) -> None:
    kit.run(ServicePushSourceControlOperator, commit_message="features")


@feature(OTHER, ServiceSourceControlSensor, "get_source_control_status")
def _source_control_sensor(kit: Kit) -> None:
    kit.run(ServiceSourceControlSensor, state="unchanged", poke_interval=0.5)


@feature(OPERATOR, ServiceGenerateAuditOperator)
def _audit(kit: Kit) -> None:
    kit.run(ServiceGenerateAuditOperator)


@feature(OPERATOR, ServiceGetInsightsOperator, "get_insights_summary")
def _insights(kit: Kit) -> None:
    kit.run(ServiceGetInsightsOperator)


@feature(OPERATOR, ServiceOperator)
def _generic(kit: Kit) -> None:
    made = kit.bench.create()
    assert (
        kit.run(ServiceOperator, resource="workflows", action="get", arguments={"workflow_id": made.id})["id"]
        == made.id
    )
