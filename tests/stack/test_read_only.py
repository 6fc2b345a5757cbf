"""A worker and the doctor of any user id, without a home, on a root that is read-only, as in strict containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator._samples import WITH_ID, webhook
from tests.runs.workflows import puts_out

from . import workflows
from .airflow_api import AirflowApi
from .deployment import AIRFLOW, Deployment
from .figures import FIGURES
from .processes import Component
from .simulated import SimulatedService
from .test_kills import assert_exactly_one_each

DAG_ID = "stack_read_only"
USER_ID = 12_345
#: Takes the folders that stay writable, then ``--`` and a command. It may read what root may: where Python and the
#: wheel are installed here is not the matter.
READ_ONLY = f"""
set -e
while [ "$1" != -- ]; do mount --bind "$1" "$1"; shift; done
mount -o remount,ro,bind /
shift
cd /
exec setpriv --reuid {USER_ID} --regid {USER_ID} --clear-groups --no-new-privs \\
    --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search env -u HOME -u USER "$@"
"""


def read_only(folders: list[Path], *command: str) -> list[str]:
    """A command that may write only to some folders."""
    return ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", *map(str, folders), "--", *command]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where anybody may write, if the machine lets us make everything else read-only."""
    tmp_path.chmod(0o777)
    probe = "import os; raise SystemExit(os.getuid() == 0 or os.access('/', os.W_OK))"
    try:
        subprocess.run(read_only([tmp_path], sys.executable, "-c", probe), check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no namespace with a read-only root: {getattr(error, 'stderr', error)}")
    return tmp_path


@pytest.fixture
def worker(deployment: Deployment, folder: Path) -> Iterator[Component]:
    """A worker of Celery that takes only the tasks of its queue."""
    logs = deployment.folder / "logs"
    logs.chmod(0o777)
    options = ("--queues", "read-only", "--celery-hostname", "read-only@%h", "--pid", str(folder / "worker.pid"))
    quiet = ("--skip-serve-logs", "--without-gossip", "--without-mingle", "--concurrency", "2")
    one = Component(
        "worker-read-only",
        read_only([logs, folder], *AIRFLOW, "celery", "worker", *options, *quiet),
        folder=deployment.folder,
        # Airflow's worker does not start for a user without a name.
        environment={**deployment.settings.environment(), "TMPDIR": str(folder), "LOGNAME": "anybody"},
    )
    one.start()
    yield one
    one.end()


def test_tasks_write_only_what_they_name(
    worker: Component,
    folder: Path,
    api: AirflowApi,
    service: SimulatedService,
    client: ServiceClient,
) -> None:
    output = puts_out(json.dumps({"text": "more than a task returns " * 4_000}))
    nodes = [webhook(workflows.path(), options={"responseData": WITH_ID}), output]
    workflow_id = service.create_workflow("Read-only root", nodes)
    written = folder / "written"
    written.mkdir()
    written.chmod(0o777)
    api.unpause(DAG_ID)
    run_id = api.trigger(DAG_ID, {"workflow_id": workflow_id, "folder": str(written)})

    assert api.wait_for_run(DAG_ID, run_id, seconds=600) == "failed"
    states = {one.task_id: one.state for one in api.tasks(DAG_ID, run_id)}
    assert {task for task, state in states.items() if state != "success"} == {"elsewhere"}
    assert "Read-only file system: '/.elsewhere.csv" in api.log(DAG_ID, run_id, "elsewhere")
    assert_exactly_one_each(client, [workflow_id], 2)
    files = {str(one.relative_to(written)): one.stat().st_uid for one in written.rglob("*") if one.is_file()}
    assert set(files.values()) == {USER_ID}
    assert sorted(files) == [
        *("backup.md", "backup.zip", "blocking.json", "deferred.json", "rows.csv", "rows.parquet"),
        "workflows/Read-only root.json",
    ]
    others = {one.name for one in folder.rglob("*") if one.is_file() and written not in one.parents}
    assert others <= {"worker.pid"}
    FIGURES.add("tasks of any user id on a read-only root", len(states) - 1)


def test_the_doctor(folder: Path, service: SimulatedService) -> None:
    command = [sys.executable, "-P", "-m", "airflow_provider_service", "doctor"]
    # Airflow itself gets no connection without a temporary folder.
    environment = {"PATH": os.environ["PATH"], "AIRFLOW_HOME": str(folder), "TMPDIR": str(folder)}
    done = subprocess.run(
        read_only([folder], *command),
        env={**environment, "SERVICE_URL": service.base_url, "SERVICE_API_KEY": service.api_key},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    assert "ok    version" in done.stdout
    assert {one.name for one in folder.rglob("*") if one.is_file()} <= {"airflow.db"}  # Airflow's own
