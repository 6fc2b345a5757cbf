"""Backups on a real server: the backup of one, restored into an empty other, gives the same export."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_provider_service._core.instances.backup import Backup, write_backup
from airflow_provider_service._core.instances.backup_archive import ArchiveReader
from airflow_provider_service._core.instances.restore import OnConflict, Restore, RestorePlan
from airflow_provider_service._core.instances.restore_reading import read_backup
from airflow_provider_service.client import ServiceClient
from tests.instances.contents import fill, state_of
from tests.instances.workflows import node, webhook

from .conftest import MakeServer
from .relay import Relay
from .running import DRAFTS, connect, delete_credentials, delete_workflows
from .servers import LiveServer


@pytest.fixture
def client(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceClient]:
    with connect(monkeypatch, live_server) as client:
        yield client
        delete_workflows(client)
        delete_credentials(client)
        for table in list(client.data_tables.list()) if live_server.generation.major > 1 else ():
            client.data_tables.delete(table.id)
        for tag in list(client.tags.list()):
            client.tags.delete(tag.id)


def back_up(client: ServiceClient, path: Path) -> Backup:
    return write_backup(client, str(path), made_at=datetime.now(UTC), service="live")


def restore(client: ServiceClient, path: Path, on_conflict: OnConflict = "fail") -> RestorePlan:
    done = Restore(client, read_backup(ArchiveReader(io.BytesIO(path.read_bytes()))), on_conflict)
    plan = done.plan()
    done.carry_out(plan)
    return plan


def test_the_backup_of_one_restored_into_another_gives_the_same_export(
    client: ServiceClient,
    live_server: LiveServer,
    make_server: MakeServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if live_server.generation.major == 1:
        pytest.skip("this generation has no data tables and no drafts, and does not list credentials")
    fill(client)
    [orders] = client.workflows.list(name="orders")
    has_drafts = live_server.generation.has(DRAFTS)
    if has_drafts:
        client.workflows.update(orders.id, "orders", [webhook("draft")], {}, {}, publish_if_active=False)
    made = back_up(client, tmp_path / "backup.zip")
    gaps = {gap.what for gap in made.gaps}
    assert {"variables", "projects", "secrets of credentials"} <= gaps
    assert not {"credentials", "data tables", "users"} & gaps
    expected = state_of(client)
    with make_server() as other, connect(monkeypatch, other) as there:
        plan = restore(there, tmp_path / "backup.zip")
        assert plan.counts()["workflows"]["created"] == 3
        assert state_of(there) == expected
        if has_drafts:
            [copy] = there.workflows.list(name="orders")
            assert [one["parameters"]["path"] for one in there.workflows.get(copy.id).nodes or []] == ["draft"]
        assert back_up(there, tmp_path / "again.zip").counts == made.counts
        assert restore(there, tmp_path / "backup.zip").is_empty
        [idle] = there.workflows.list(name="idle")
        there.workflows.update(idle.id, "idle", [webhook("theirs")], {}, {})
        assert restore(there, tmp_path / "backup.zip", "skip").left == {"workflows": ["idle"]}
        restore(there, tmp_path / "backup.zip", "update")
        assert state_of(there) == expected


@pytest.mark.smoke
def test_a_restore_into_the_same_unchanged_instance_writes_nothing(
    client: ServiceClient, live_server: LiveServer, tmp_path: Path
) -> None:
    rule = {"interval": [{"field": "hours", "hoursInterval": 12}]}
    every_half_day = node("Schedule", "scheduleTrigger", {"rule": rule}, typeVersion=1.2)
    ids = [client.workflows.create("same", [every_half_day], {}, {}).id for _ in range(2)]
    for one in ids:
        client.workflows.activate(one)
    call = {"__rl": True, "mode": "list", "value": ids[1], "cachedResultName": "same"}
    client.workflows.create("caller", [node("Call", "executeWorkflow", {"workflowId": call}, typeVersion=1.2)], {}, {})
    back_up(client, tmp_path / "backup.zip")
    before = {one.id: (one.name, one.active, one.updated_at) for one in client.workflows.list()}
    choices: tuple[OnConflict, ...] = ("fail", "skip", "update")
    with Relay(live_server.base_url) as relay:
        config = client.transport.config.model_copy(update={"base_url": relay.base_url})
        with ServiceClient(config) as relayed:
            for on_conflict in choices:
                assert restore(relayed, tmp_path / "backup.zip", on_conflict).is_empty
    assert {one.method for one in relay.requests} == {"GET"}
    assert {one.id: (one.name, one.active, one.updated_at) for one in client.workflows.list()} == before
