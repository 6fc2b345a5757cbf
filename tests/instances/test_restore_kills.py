"""A worker that is killed outright in the middle of a restore: the next attempt brings about what is expected."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

from .contents import fill, state_of
from .workflows import webhook

SCRIPT = """
import sys
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.instances.backup_archive import ArchiveReader
from airflow_provider_service.instances.restore import Restore
from airflow_provider_service.instances.restore_reading import read_backup

with ServiceClient(ServiceConfig(base_url=sys.argv[1], api_key=sys.argv[2])) as client, open(sys.argv[3], "rb") as file:
    restore = Restore(client, read_backup(ArchiveReader(file)), sys.argv[4])
    restore.carry_out(restore.plan())
"""
WRITES = 22


@pytest.mark.parametrize(("seed", "on_conflict"), [(1, "fail"), (2, "fail"), (3, "skip"), (4, "skip"), (5, "update")])
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
