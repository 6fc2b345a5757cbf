"""A backup restored: into an empty instance, a filled one, and one in which somebody has changed things."""

from __future__ import annotations

import hashlib
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.instances.backup_archive import ArchiveReader
from airflow_provider_service._core.instances.restore import Restore
from airflow_provider_service._core.instances.restore_reading import read_backup
from airflow_provider_service.client._lookup import get_folder
from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

from .contents import fill, state_of
from .workflows import webhook, workflow


@pytest.fixture
def back_up(execute, path):
    return lambda **arguments: execute(ServiceBackupOperator, path=path, **arguments)


@pytest.fixture
def restore(execute, path, second):
    """``restore()`` restores into the second instance."""

    def run(**arguments):
        return execute(ServiceRestoreOperator, path=path, **{"service_conn_id": "production", **arguments})

    return run


def total(done: dict, action: str) -> int:
    return sum(one[action] for one in done["counts"].values())


def test_an_empty_instance_gets_every_object(client, second_client, back_up, restore, path):
    fill(client)
    client.variables.create("REGION", "eu")
    made = back_up()
    expected = {"workflows": 3, "tags": 3, "data_tables": 2, "rows": 5, "credentials": 1, "users": 1, "variables": 1}
    assert made["counts"] == {**expected, "projects": 0, "folders": 0}
    with ZipFile(path) as archive:
        assert b"top-secret" not in b"".join(map(archive.read, archive.namelist()))
    done = restore()
    assert (done["outcome"], done["credentials_without_secrets"], done["left"]) == ("restored", ["mail"], {})
    assert state_of(second_client) == state_of(client)
    assert [(one.key, one.value) for one in second_client.variables.list()] == [("REGION", "eu")]
    assert [(one.name, one.type) for one in second_client.credentials.list()] == [("mail", "httpHeaderAuth")]
    used = next(iter(second_client.credentials.list())).id
    [orders] = second_client.workflows.list(name="orders")
    assert orders.nodes[1]["credentials"]["httpHeaderAuth"]["id"] == used


def test_existing_objects_are_left_alone_and_nothing_is_written(client, back_up, restore, second, second_client):
    fill(client)
    back_up()
    restore()
    second.clear_requests()
    for choice in ("fail", "skip", "update"):
        assert restore(on_conflict=choice)["outcome"] == "unchanged"
    assert [one for one in second.requests if one.method != "GET"] == []


@pytest.fixture
def changed(client, second_client, back_up, restore):
    """A second instance in which somebody has changed a workflow, a table and a variable, and added objects."""
    fill(client)
    client.variables.create("REGION", "eu")
    back_up()
    restore()
    [orders] = second_client.workflows.list(name="orders")
    second_client.workflows.update(orders.id, "orders", [webhook("theirs")], {}, {})
    second_client.workflows.create("more", [webhook("more")], {}, {})
    [stock] = second_client.data_tables.list(filter={"name": "stock"})
    second_client.data_table_rows.insert(stock.id, [{"s": "theirs"}])
    [region] = second_client.variables.list()
    second_client.variables.update(region.id, "REGION", "us")
    [idle] = second_client.workflows.list(name="idle")
    second_client.workflows.delete(idle.id)


def test_a_conflict_fails_before_anything_is_written(changed, restore, second, second_client):
    before = state_of(second_client)
    second.clear_requests()
    with pytest.raises(AirflowFailException, match="variables: 'REGION'; data_tables: 'stock'; workflows: 'orders'"):
        restore()
    assert [one for one in second.requests if one.method != "GET"] == []
    assert state_of(second_client) == before


def test_a_conflict_is_skipped(changed, restore, second_client, client):
    done = restore(on_conflict="skip")
    assert done["left"] == {"variables": ["REGION"], "data_tables": ["stock"], "workflows": ["orders"]}
    held = state_of(second_client)
    assert held["workflows"]["orders"]["nodes"][0]["parameters"]["path"] == "theirs"
    assert held["workflows"]["idle"] == state_of(client)["workflows"]["idle"]
    assert len(held["tables"]["stock"]["rows"]) == 6
    assert next(iter(second_client.variables.list())).value == "us"


@pytest.mark.slow
def test_a_conflict_is_updated_and_further_objects_are_left_alone(changed, restore, second_client, client):
    preview = restore(on_conflict="update", preview=True)
    assert preview["outcome"] == "planned"
    done = restore(on_conflict="update")
    assert (total(done, "updated"), total(done, "created")) == (3, 1)
    assert preview["counts"] == done["counts"]
    held = state_of(second_client)
    assert held["workflows"].pop("more")
    assert held == state_of(client)
    assert next(iter(second_client.variables.list())).value == "eu"


def test_a_draft_is_a_draft_again(client, back_up, restore, second_client):
    fill(client)
    [orders] = client.workflows.list(name="orders")
    client.workflows.update(orders.id, "orders", [webhook("draft")], {}, {}, publish_if_active=False)
    back_up()
    restore()
    [held] = second_client.workflows.list(name="orders")
    held = second_client.workflows.get(held.id)
    assert held.nodes[0]["parameters"]["path"] == "draft"
    assert held.active_version.nodes[0]["parameters"]["path"] == "orders"
    assert restore()["outcome"] == "unchanged"
    second_client.workflows.update(held.id, "orders", [webhook("theirs")], {}, {}, publish_if_active=False)
    with pytest.raises(AirflowFailException, match="workflows: 'orders'"):
        restore()
    assert restore(on_conflict="update")["counts"]["workflows"]["updated"] == 1
    assert second_client.workflows.get(held.id).nodes[0]["parameters"]["path"] == "draft"


def test_nothing_is_activated_on_request(client, back_up, restore, second_client):
    fill(client)
    back_up()
    restore(activate=False)
    assert [one.active for one in second_client.workflows.list()] == [False] * 3
    assert restore(activate=False)["outcome"] == "unchanged"


def test_workflows_that_share_a_name_are_all_restored(client, back_up, restore, second_client):
    ids = [client.workflows.create("same", [webhook(f"same-{number}")], {}, {}).id for number in range(2)]
    call = {"__rl": True, "mode": "list", "value": ids[1], "cachedResultName": "same"}
    caller = {"name": "Call", "type": "n8n-nodes-base.executeWorkflow", "typeVersion": 1.2, "position": [0, 0]}
    client.workflows.create("caller", [{**caller, "parameters": {"workflowId": call}}], {}, {})
    back_up()
    restore()
    held = {one.name: one for one in second_client.workflows.list()}
    assert held.keys() == {"caller", *(f"same ({one})" for one in ids)}
    called = held["caller"].nodes[0]["parameters"]["workflowId"]["value"]
    assert called == held[f"same ({ids[1]})"].id
    assert restore()["outcome"] == "unchanged"


def test_projects_members_folders_and_their_tables(client, back_up, restore, second_client):
    client.users.create([{"email": "a@example.com", "role": "global:member"}])
    second_client.users.create([{"email": "A@example.com", "role": "global:member"}])
    client.users.create([{"email": "gone@example.com", "role": "global:member"}])
    users = {one.email: one.id for one in client.users.list()}
    project = client.projects.create("Sales")
    members = [{"userId": users[one], "role": "project:editor"} for one in ("a@example.com", "gone@example.com")]
    client.projects.add_users(project.id, members)
    outer = client.folders.create(project.id, "Reports")
    client.folders.create(project.id, "Daily", parent_folder_id=outer.id)
    client.variables.create("REGION", "eu", project_id=project.id)
    table = client.data_tables.create("stock", [{"name": "s", "type": "string"}], project_id=project.id)
    client.data_table_rows.insert(table.id, [{"s": "x"}])
    client.workflows.create("theirs", [webhook("theirs")], {}, {}, project_id=project.id)
    back_up()
    done = restore()
    assert [gap["what"] for gap in done["not_restored"]] == ["1 members of project 'Sales'"]
    there = {one.name: one for one in second_client.projects.list()}["Sales"]
    assert {"a@example.com"} <= {one.email.lower() for one in second_client.projects.list_users(there.id)}
    assert get_folder(second_client, "Reports/Daily", project_id=there.id).name == "Daily"
    assert len(list(second_client.folders.list(there.id))) == 2
    assert [(one.key, one.project.id) for one in second_client.variables.list()] == [("REGION", there.id)]
    [held] = second_client.data_tables.list()
    assert (held.name, held.project_id) == ("stock", there.id)
    assert [one.name for one in second_client.workflows.list(project_id=there.id)] == ["theirs"]
    assert restore()["outcome"] == "unchanged"


def test_what_the_license_hides_is_reported(simulator, client, back_up, restore, second, second_client):
    fill(client)
    client.variables.create("REGION", "eu")
    back_up()
    second.state.licensed = False
    try:
        done = restore()
        assert [gap["what"] for gap in done["not_restored"]] == ["1 variables"]
        assert state_of(second_client) == state_of(client)
        simulator.state.licensed = False
        gaps = {one["what"]: one["why"] for one in back_up()["left_out"]}
    finally:
        simulator.state.licensed = second.state.licensed = True
    assert "license" in gaps["variables"]
    assert "never shows" in gaps["secrets of credentials"]


@pytest.mark.parametrize("version", ["2.20.12", "2.41.1"])
def test_credentials_without_secrets_are_taken_by_older_servers(
    client, back_up, restore, second, second_client, version
):
    # Before n8n 2.30, fields that belong to a field without a value are required, too.
    kinds = ("httpHeaderAuth", "jwtAuth", "postgres", "slackApi")
    for number, kind in enumerate(kinds):
        client.credentials.create(f"credential {number}", kind, {"accessToken": "x"} if kind == "slackApi" else {})
    back_up()
    second.version = version
    assert restore(service_conn_id="production")["not_restored"] == []
    assert sorted(one.type for one in second_client.credentials.list()) == [*kinds]


def test_a_credential_of_an_unknown_type_is_named(client, back_up, restore, second, second_client):
    client.credentials.create("mail", "httpHeaderAuth", {"name": "a", "value": "b"})
    back_up()
    second.inject("status", status=404, path="/credentials/schema/", times=None)
    done = restore()
    assert [gap["what"] for gap in done["not_restored"]] == ["credential 'mail'"]
    assert list(second_client.credentials.list()) == []


def test_a_table_with_a_column_of_another_type(client, back_up, restore, second, second_client):
    fill(client)
    back_up()
    second_client.data_tables.create("stock", [{"name": "s", "type": "number"}])
    second.clear_requests()
    with pytest.raises(AirflowFailException, match="'s' is number, not string"):
        restore(on_conflict="update")
    assert [one for one in second.requests if one.method != "GET"] == []
    assert restore(on_conflict="skip")["left"] == {"data_tables": ["stock"]}


def test_a_workflow_that_is_refused_rolls_the_workflows_back(client, back_up, restore, second, second_client):
    fill(client)
    back_up()
    second.inject("status", status=400, method="POST", path="/activate$", times=1)
    with pytest.raises(AirflowFailException, match="Everything that it had changed was rolled back"):
        restore()
    names = [one.name for one in second_client.workflows.list()]
    assert len(names) == 1
    assert names[0].startswith("Airflow: restore of the backup")
    restore()
    assert state_of(second_client) == state_of(client)


def test_the_record_keeps_what_was_skipped_by_the_first_attempt(changed, restore, second, second_client, client):
    second.inject("status", status=400, method="POST", path="/workflows$", times=None)
    with pytest.raises(AirflowFailException):
        restore(on_conflict="skip")
    second.clear_faults()
    second.inject("status", status=400, method="POST", path="/activate$", times=None)
    [child] = second_client.workflows.list(name="child")
    second_client.workflows.delete(child.id) if not child.active else None
    restore(on_conflict="skip")
    held = state_of(second_client)
    assert held["workflows"]["orders"]["nodes"][0]["parameters"]["path"] == "theirs"
    assert len(held["tables"]["stock"]["rows"]) == 6


def test_a_change_by_others_in_the_meantime_fails_the_comparison(client, back_up, path, second_client):
    fill(client)
    back_up()
    archive = ArchiveReader(io.BytesIO(Path(path).read_bytes()))
    restore = Restore(second_client, read_backup(archive))
    plan = restore.plan()
    table = next(one for one in plan.objects["data_tables"].changes if one.name == "stock")
    perform = table.perform

    def and_somebody_else(there):
        perform(there)
        [stock] = there.data_tables.list(filter={"name": "stock"})
        there.data_table_rows.insert(stock.id, [{"s": "theirs"}])

    object.__setattr__(table, "perform", and_somebody_else)
    with pytest.raises(ServiceError, match=r"differs from the backup.*data_tables: update 'stock'"):
        restore.carry_out(plan)


def test_the_archive_is_complete_or_absent(simulator, client, back_up, tmp_path, path):
    fill(client)
    simulator.inject("status", status=500, method="GET", path="/rows", times=None)
    with pytest.raises(ServiceError):
        back_up()
    assert list(tmp_path.iterdir()) == []
    simulator.clear_faults()
    back_up()
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == [
            "contents.json",
            "data_tables/empty.jsonl",
            "data_tables/stock.jsonl",
            "manifest.json",
            "workflows/child.json",
            "workflows/idle.json",
            "workflows/orders.json",
        ]
        manifest = json.loads(archive.read("manifest.json"))
    assert datetime.fromisoformat(manifest["made_at"]) <= datetime.now(UTC)


@pytest.mark.slow
def test_the_archive_is_in_object_storage(client, execute, second, second_client, bucket):
    fill(client)
    address = bucket.address("backups/one.zip")
    made = execute(ServiceBackupOperator, path=address)
    assert (made["path"], bucket.keys()) == (address, ["backups/one.zip"])
    data = bucket.files.cat_file(f"{bucket.name}/backups/one.zip")
    assert (len(data), hashlib.sha256(data).hexdigest()) == (made["bytes"], made["sha256"])
    execute(ServiceRestoreOperator, path=address, service_conn_id="production")
    assert state_of(second_client) == state_of(client)


def test_backups_of_the_same_have_the_same_members(client, back_up, path):
    fill(client)
    members = []
    for _ in range(2):
        back_up()
        with ZipFile(path) as archive:
            members.append(json.loads(archive.read("manifest.json"))["members"])
    assert members[0] == members[1]


def test_reports(client, back_up, restore, tmp_path, link):
    fill(client)
    back_up(report_path=str(tmp_path / "backup.md"))
    assert link() == "/home/workflows"
    assert "secrets of credentials" in (tmp_path / "backup.md").read_text()
    restore(report_path=str(tmp_path / "restore.md"), preview=True)
    text = (tmp_path / "restore.md").read_text()
    assert "orders: create, activate" in text
    assert text.startswith("# Plan of a restore\n")
    assert "it does not say whether the plan was carried out" in text


@pytest.mark.parametrize("name", ["backup.tar", "backup"])
def test_other_suffixes_are_refused(execute, tmp_path, name):
    for operator in (ServiceBackupOperator, ServiceRestoreOperator):
        with pytest.raises(AirflowFailException, match=r"path must end in \.zip"):
            execute(operator, path=str(tmp_path / name))


def test_an_archive_that_is_not_there(restore):
    with pytest.raises(AirflowFailException, match="there is no file"):
        restore()


def test_a_workflow_without_nodes_and_a_table_without_columns(client, back_up, restore, second_client):
    client.workflows.create("bare", [], {}, {})
    client.data_tables.create("bare", [])
    back_up()
    restore()
    assert state_of(second_client) == state_of(client)
    assert workflow("bare")["name"] in state_of(client)["workflows"]


def test_a_restore_into_the_same_instance_finds_workflows_that_share_a_name(client, back_up, restore, writes):
    first = client.workflows.create("x", [webhook("first")], {}, {}).id
    for path in ("second", "third"):
        made = client.workflows.create("x", [webhook(path)], {}, {})
    client.workflows.activate(made.id)
    client.workflows.update(made.id, "x", [webhook("draft")], {}, {}, publish_if_active=False)
    client.workflows.create(f"x ({first})", [webhook("fourth")], {}, {})
    back_up()
    writes()
    assert restore(service_conn_id="service_default")["outcome"] == "unchanged"
    assert writes() == []


def test_the_documented_layout_is_that_of_an_archive(client, back_up, path):
    fill(client)
    back_up()
    page = (Path(__file__).parents[2] / "docs" / "backup.md").read_text()
    rows = dict(re.findall(r"^\| `([\w./*]+)` \| (.*) \|$", page, re.M))
    with ZipFile(path) as archive:
        documented = {name: next(one for one in rows if Path(name).match(one)) for name in archive.namelist()}
        for name, row in documented.items():
            if name.endswith(".json"):
                assert [key for key in json.loads(archive.read(name)) if f"`{key}`" not in rows[row]] == []
    assert {*documented.values()} == rows.keys()
