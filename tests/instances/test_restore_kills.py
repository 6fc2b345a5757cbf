"""A worker is killed outright in the middle of a restore: the next attempt produces the expected state.

It does so whatever the last request was that the service received, and after a real kill at a random time.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

from .conftest import moments
from .contents import fill, state_of
from .workflows import webhook

SCRIPT = """
import sys
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service._core.instances.backup_archive import ArchiveReader
from airflow_provider_service._core.instances.restore import Restore
from airflow_provider_service._core.instances.restore_reading import read_backup

with ServiceClient(ServiceConfig(base_url=sys.argv[1], api_key=sys.argv[2])) as client, open(sys.argv[3], "rb") as file:
    restore = Restore(client, read_backup(ArchiveReader(file)), sys.argv[4])
    restore.carry_out(restore.plan())
"""
WRITES = 22


@pytest.mark.slow
@pytest.mark.parametrize(("on_conflict", "step"), [("fail", 1), ("skip", 3), ("update", 3)])
def test_the_next_attempt_finishes_whatever_the_last_request_was(
    client, second, second_client, execute, tmp_path, on_conflict, step
):
    path = str(tmp_path / "backup.zip")
    fill(client)
    client.variables.create("REGION", "eu")
    execute(ServiceBackupOperator, path=path)

    def begin():
        second.reset()
        if on_conflict != "fail":
            second_client.workflows.create("idle", [webhook("theirs", id="theirs", webhookId="theirs")], {}, {})
        second.clear_requests()

    def restore():
        execute(ServiceRestoreOperator, path=path, service_conn_id="production", on_conflict=on_conflict)

    begin()
    restore()
    after = moments(second)
    expected = held(second_client)
    assert len(after) > 15
    for last in after[::step]:
        begin()
        second.inject("status", status=403, times=None, skip=last)
        with pytest.raises((ServiceError, AirflowFailException)):
            restore()
        second.clear_faults()
        restore()
        assert held(second_client) == expected, last


def held(client):
    """What is restored, besides credentials their number."""
    variables = [(one.key, one.value) for one in client.variables.list()]
    return state_of(client), variables, len(list(client.credentials.list()))


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(("seed", "on_conflict"), [(5, "update"), (1, "fail"), (3, "skip")])
def test_the_next_attempt_finishes_what_was_killed(client, second, second_client, execute, tmp_path, seed, on_conflict):
    path = str(tmp_path / "backup.zip")
    fill(client)
    client.variables.create("REGION", "eu")
    execute(ServiceBackupOperator, path=path)
    expected = state_of(client)
    if on_conflict != "fail":
        second_client.workflows.create("idle", [webhook("theirs")], {}, {})
    if on_conflict == "skip":
        expected["workflows"]["idle"] = state_of(second_client)["workflows"]["idle"]
    second.clear_requests()
    second.inject("latency", seconds=0.02, times=None)
    before = random.Random(seed).randrange(1, WRITES)
    command = [sys.executable, "-c", SCRIPT, second.base_url, second.api_key, path, on_conflict]
    process = subprocess.Popen(command)
    while process.poll() is None and sum(one.method != "GET" for one in second.requests) < before:
        time.sleep(0.005)
    process.kill()
    process.wait()
    time.sleep(0.3)  # Airflow starts the next attempt later, when nothing is on its way any more
    second.clear_faults()
    execute(ServiceRestoreOperator, path=path, service_conn_id="production", on_conflict=on_conflict)
    assert state_of(second_client) == expected
    assert [one.value for one in second_client.variables.list()] == ["eu"]
    assert len(list(second_client.credentials.list())) == 1


def test_the_next_attempt_overwrites_nothing_else_that_has_changed_since(
    client, second, second_client, execute, tmp_path
):
    fill(client)
    path = str(tmp_path / "backup.zip")
    execute(ServiceBackupOperator, path=path)

    def restore(on_conflict):
        return execute(ServiceRestoreOperator, path=path, service_conn_id="production", on_conflict=on_conflict)

    restore("fail")
    [child] = second_client.workflows.list(name="child")
    [idle] = second_client.workflows.list(name="idle")
    second_client.workflows.delete(idle.id)
    second.inject("status", status=400, method="POST", path="/workflows$", body='"idle"')
    with pytest.raises(AirflowFailException, match="while creating 'idle'"):
        restore("fail")
    [stock] = second_client.data_tables.list(filter={"name": "stock"})
    second_client.data_table_rows.insert(stock.id, [{"s": "theirs"}])
    second_client.workflows.update(child.id, "child", child.nodes, child.connections, {"timezone": "UTC"})
    changed = state_of(second_client)
    with pytest.raises(AirflowFailException, match="data_tables: 'stock'; workflows: 'child'"):
        restore("fail")
    assert state_of(second_client) == changed
    second.clear_faults()
    assert restore("skip")["left"] == {"data_tables": ["stock"], "workflows": ["child"]}
    done = state_of(second_client)
    assert done["workflows"].pop("idle")
    changed["workflows"] = {name: one for name, one in changed["workflows"].items() if not name.startswith("Airflow")}
    assert done == changed
