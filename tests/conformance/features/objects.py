"""Features around what an instance holds: workflows, tables, tags, credentials and the rest."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
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
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureDataTablesOperator,
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
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceUpdateRowsOperator,
    ServiceUpsertRowsOperator,
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
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from tests.conformance.differences import REFUSING_ONLY
from tests.conformance.expecting import unique
from tests.conformance.tables import where
from tests.conformance.workbench import done, webhook
from tests.instances.workflows import workflow

from .kit import DATABASE, OPERATOR, OTHER, TRANSFER, Kit, feature

COLUMNS = [{"name": "sku", "type": "string"}, {"name": "stock", "type": "number"}]
ROWS = [{"sku": "a", "stock": 1}, {"sku": "b", "stock": 2}]
A = where(("sku", "eq", "a"))


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
    kit.run(ServiceSetWorkflowTagsOperator, workflow_id=made.id, tags=[name])
    assert [tag.name for tag in kit.service.client.workflows.get(made.id).tags or ()] == [name]


# ---------------------------------------------------------------- data tables


@feature(OPERATOR, ServiceCreateDataTableOperator, "create_data_table")
def _create_table(kit: Kit) -> None:
    made = kit.run(ServiceCreateDataTableOperator, name=unique("table"), columns=COLUMNS)
    kit.service.client.data_tables.delete(made["data_table_id"])


@feature(
    OPERATOR, "`ServiceCreateDataTableOperator` that adds columns", "create_data_table", "create_data_table_column"
)
def _add_columns(kit: Kit) -> None:
    table = kit.tables.create({"sku": "string"})
    kit.run(ServiceCreateDataTableOperator, name=table.name, columns=COLUMNS)
    assert {column.name for column in kit.service.client.data_tables.get(table.id).columns or ()} >= {"sku", "stock"}


def _table(kit: Kit, rows: list[dict[str, Any]] | None = None) -> str:
    table_id = kit.tables.create({"sku": "string", "stock": "number"}).id
    if rows:
        kit.service.client.data_table_rows.insert(table_id, rows)
    return table_id


@feature(OPERATOR, ServiceInsertRowsOperator, "insert_data_table_rows")
def _insert(kit: Kit) -> None:
    table_id = _table(kit)
    kit.run(ServiceInsertRowsOperator, data_table_id=table_id, rows=ROWS)
    assert kit.tables.rows(table_id) == ROWS


@feature(OPERATOR, ServiceUpsertRowsOperator, "upsert_data_table_rows")
def _upsert(kit: Kit) -> None:
    table_id = _table(kit, ROWS[:1])
    kit.run(ServiceUpsertRowsOperator, data_table_id=table_id, rows=ROWS, key_columns=["sku"])
    assert kit.tables.rows(table_id) == ROWS


@feature(OPERATOR, ServiceUpdateRowsOperator, "update_data_table_rows")
def _update(kit: Kit) -> None:
    table_id = _table(kit, ROWS)
    kit.run(ServiceUpdateRowsOperator, data_table_id=table_id, filter=A, data={"stock": 9})
    assert kit.tables.rows(table_id) == [{"sku": "a", "stock": 9}, ROWS[1]]


@feature(OPERATOR, ServiceDeleteRowsOperator, "delete_data_table_rows")
def _delete_rows(kit: Kit) -> None:
    table_id = _table(kit, ROWS)
    kit.run(ServiceDeleteRowsOperator, data_table_id=table_id, filter=A)
    assert kit.tables.rows(table_id) == ROWS[1:]


@feature(OPERATOR, ServiceReadRowsOperator, "list_data_table_rows")
def _read(kit: Kit) -> None:
    found = kit.run(ServiceReadRowsOperator, data_table_id=_table(kit, ROWS), filter=A)
    assert found["count"] == 1


@feature(OPERATOR, ServiceEnsureDataTablesOperator, "create_data_table")
def _ensure_tables(kit: Kit) -> None:
    name = unique("table")
    for _ in range(2):
        kit.run(ServiceEnsureDataTablesOperator, data_tables={name: {"sku": "string"}})
    [table] = [one for one in kit.service.client.data_tables.list() if one.name == name]
    kit.service.client.data_tables.delete(table.id)


@feature(TRANSFER, SqlToServiceDataTableOperator, "list_data_table_rows")
def _from_sql(kit: Kit) -> None:
    table_id = _table(kit)
    kit.run(
        SqlToServiceDataTableOperator,
        sql="SELECT 'a' AS sku, 1 AS stock",
        sql_conn_id=DATABASE,
        data_table_id=table_id,
        mode="append",
    )
    assert kit.tables.rows(table_id) == ROWS[:1]


@feature(TRANSFER, ObjectStorageToServiceDataTableOperator, "list_data_table_rows")
def _from_file(kit: Kit) -> None:
    table_id = _table(kit)
    path = kit.folder / "rows.csv"
    path.write_text("sku,stock\na,1\nb,2\n")
    kit.run(
        ObjectStorageToServiceDataTableOperator,
        path=str(path),
        data_table_id=table_id,
        mode="upsert",
        key_columns=["sku"],
    )
    assert kit.tables.rows(table_id) == ROWS


@feature(TRANSFER, ServiceDataTableToObjectStorageOperator, "list_data_table_rows")
def _to_file(kit: Kit) -> None:
    path = kit.folder / "rows.csv"
    kit.run(ServiceDataTableToObjectStorageOperator, data_table_id=_table(kit, ROWS), path=str(path))
    assert len(path.read_text().splitlines()) == 3


@feature(TRANSFER, ServiceDataTableToSqlOperator, "list_data_table_rows")
def _to_sql(kit: Kit) -> None:
    with closing(sqlite3.connect(kit.folder / "features.sqlite")) as database, database:
        database.execute("CREATE TABLE stock (sku TEXT, stock REAL)")
    kit.run(
        ServiceDataTableToSqlOperator,
        data_table_id=_table(kit, ROWS),
        sql_table="stock",
        sql_conn_id=DATABASE,
        mode="append",
        columns=["sku", "stock"],
    )
    with closing(sqlite3.connect(kit.folder / "features.sqlite")) as database:
        assert database.execute("SELECT * FROM stock ORDER BY sku").fetchall() == [("a", 1.0), ("b", 2.0)]


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
    kit.service.client.users.delete(str(kit.service.client.users.get(email).id))


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
