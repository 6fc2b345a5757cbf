"""What would be deleted because nothing came back stays, unless ``allow_empty`` says otherwise."""

from __future__ import annotations

import pathlib

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.operators.desired_state import ServiceEnsureTagsOperator
from airflow_provider_service.operators.instances import (
    ServiceDeployWorkflowsOperator,
    ServiceExportWorkflowsOperator,
    ServicePromoteWorkflowsOperator,
)

from .workflows import child, webhook, workflow

ALLOWED = "nothing was deleted. If that is what you want, give allow_empty=True"


def refused(because):
    return pytest.raises(AirflowFailException, match=f"{because}.*; {ALLOWED}")


def test_an_export_of_nothing_leaves_all_files(execute, client, simulator, deploy, tmp_path):
    arguments = {"path": str(tmp_path), "remove_stale": True}
    assert execute(ServiceExportWorkflowsOperator, **arguments)["removed"] == []
    deploy([child(), workflow("other", webhook("other"))])
    execute(ServiceExportWorkflowsOperator, **arguments)
    client.tags.create("unused")
    said = "the service returned no workflow to export, and remove_stale=True would delete the files of all 2 workflows"
    with refused(said):
        execute(ServiceExportWorkflowsOperator, **arguments, tag_name="unused")
    simulator.reset()
    with refused(said):
        execute(ServiceExportWorkflowsOperator, **arguments)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["child.json", "other.json"]

    done = execute(ServiceExportWorkflowsOperator, **arguments, allow_empty=True)

    assert (done["removed"], list(tmp_path.iterdir())) == (["child.json", "other.json"], [])


def test_three_empty_nights_do_not_push_out_good_archives(execute, simulator, deploy, tmp_path):
    def back_up(night, **options):
        return execute(ServiceBackupOperator, path=str(tmp_path / f"{night}.zip"), keep=3, **options)

    deploy([child()])
    for night in "abc":
        back_up(night)
    simulator.reset()  # it comes up without its volume
    for night, leaving in (("d", 1), ("e", 2), ("f", 3)):
        with refused(rf"backup .*/{night}.zip holds no workflows, and keep=3 would delete the {leaving} older backups"):
            back_up(night)
    assert sorted(one.stem for one in tmp_path.iterdir()) == list("abcdef")

    assert back_up("g", allow_empty=True)["deleted"] == 4


def test_a_backup_without_tables_deletes_none_that_has_some_but_a_table_may_be_empty(execute, client, deploy, tmp_path):
    def back_up(name):
        return execute(ServiceBackupOperator, path=str(tmp_path / f"{name}.zip"), keep=2)["deleted"]

    deploy([child()])
    table = client.data_tables.create("stock", [{"name": "a", "type": "string"}])
    client.data_table_rows.insert(table.id, [{"a": "1"}])
    back_up("a")
    assert back_up("b") == 0
    client.data_table_rows.clear(table.id)
    assert [back_up(name) for name in "cd"] == [1, 1]
    client.data_tables.delete(table.id)
    with refused(r"holds no data tables, and keep=2 would delete the 1 older backups"):
        back_up("e")
    assert sorted(one.stem for one in tmp_path.iterdir()) == ["c", "d", "e"]


def test_an_empty_backup_replaces_no_other(execute, simulator, deploy, path):
    execute(ServiceBackupOperator, path=path)
    deploy([child()])
    execute(ServiceBackupOperator, path=path)
    with pathlib.Path(path).open("rb") as file:
        before = file.read()
    simulator.reset()

    with refused("holds no workflows, and it would replace a backup that holds some"):
        execute(ServiceBackupOperator, path=path)
    with pathlib.Path(path).open("rb") as file:
        assert file.read() == before
    assert execute(ServiceBackupOperator, path=path, allow_empty=True)["counts"]["workflows"] == 0


@pytest.mark.parametrize("is_promoted", [False, True])
def test_a_deployment_of_nothing_archives_nothing(execute, client, second, second_client, deploy, is_promoted):
    owned = {"deployment_name": "orders", "archive_missing": True}
    if is_promoted:
        client.tags.create("ready")
        deploy([workflow("a", webhook("a"), tags=["ready"])])
        given = {"source_conn_id": "service_default", "service_conn_id": "production", "tag_name": "ready", **owned}
        operator, said = ServicePromoteWorkflowsOperator, "the source has no workflow to promote"
        execute(operator, **given)
        client.workflows.archive(next(client.workflows.list()).id)
    else:
        operator, said = ServiceDeployWorkflowsOperator, "source holds no definition of a workflow"
        execute(operator, source=[workflow("a", webhook("a"))], service_conn_id="production", **owned)
        given = {"source": [], "service_conn_id": "production", **owned}

    with refused(said):
        execute(operator, **given)
    assert [one.name for one in second_client.workflows.list(name="a") if one.is_archived and one.name == "a"] == []

    assert execute(operator, **given, allow_empty=True)["archived"] == ["a"]


def test_a_prefix_prunes_nothing_if_nothing_is_declared(execute, client):
    for name in ("air-a", "air-b", "other"):
        client.tags.create(name)
    prune = {"tags": [], "prune": True}
    with refused("nothing is declared, and prune_prefix='air-' would delete 'air-a', 'air-b'"):
        execute(ServiceEnsureTagsOperator, **prune, prune_prefix="air-")
    assert {one.name for one in client.tags.list()} == {"air-a", "air-b", "other"}
    assert execute(ServiceEnsureTagsOperator, **prune, prune_prefix="none-")["deleted"] == 0
    assert execute(ServiceEnsureTagsOperator, **prune, prune_names=["other"])["deleted"] == 1
    assert execute(ServiceEnsureTagsOperator, **prune, prune_prefix="air-", allow_empty=True)["deleted"] == 2


def test_a_restore_empties_no_table_of_which_the_backup_holds_no_rows(execute, client, path):
    table = client.data_tables.create("stock", [{"name": "a", "type": "string"}])
    client.tags.create("kept")
    execute(ServiceBackupOperator, path=path)
    client.data_table_rows.insert(table.id, [{"a": "1"}])
    client.tags.delete(next(client.tags.list()).id)
    update = {"path": path, "on_conflict": "update"}
    with refused("the backup holds no rows of the data tables 'stock', and on_conflict='update' would delete all rows"):
        execute(ServiceRestoreOperator, **update)
    assert (len(list(client.data_table_rows.list(table.id))), list(client.tags.list())) == (1, [])
    assert execute(ServiceRestoreOperator, path=path, on_conflict="skip")["outcome"] == "restored"

    execute(ServiceRestoreOperator, **update, allow_empty=True)

    assert list(client.data_table_rows.list(table.id)) == []
