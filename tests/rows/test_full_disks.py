"""On a full disk, an error names the file and how far it came. A limit of the size of files stands for the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_service.simulator import ServiceSimulator

LIMITED = """
import resource
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.errors import ServiceError
with ServiceClient(ServiceConfig(base_url={url!r}, api_key={key!r})) as client:
    {imports}
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    try:
        {code}
    except ServiceError as error:
        print(type(error).__name__, error.final, error)
"""


def ended(simulator: ServiceSimulator, imports: str, code: str, limit: int = 100_000) -> str:
    """What a process prints and logs in which files cannot grow above a limit."""
    program = LIMITED.format(url=simulator.base_url, key=simulator.api_key, imports=imports, code=code, limit=limit)
    # Without -B, the limit would cut the bytecode of a module that is imported under it, for every later process.
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr  # where the log is


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_file_that_finds_no_space_is_named_and_leaves_the_one_before(
    simulator: ServiceSimulator, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("before")

    said = ended(
        simulator,
        "import random; from airflow_provider_service._core.object_storage import write_whole",
        f"write_whole({str(path)!r}, random.randbytes(300_000))",
    )

    start = (
        f"ServiceError False {path} could not be written: File too large, after 100,000 bytes; what was there before"
    )
    assert said.startswith(start)
    assert (path.read_text(), [one.name for one in tmp_path.iterdir()]) == ("before", [name])


def test_a_backup_that_finds_no_space_is_named(simulator: ServiceSimulator, tmp_path: Path) -> None:
    simulator.create_webhook_workflow("w", path="w")
    said = ended(
        simulator,
        "from datetime import UTC, datetime; from airflow_provider_service._core.instances.backup import write_backup",
        f"write_backup(client, {str(tmp_path / 'b.zip')!r}, made_at=datetime.now(UTC), service='s')",
        limit=500,
    )

    assert f"{tmp_path}/b.zip could not be written: File too large, after 500 bytes" in said
    assert list(tmp_path.iterdir()) == []


def test_an_export_says_how_many_workflows_it_has_written(simulator: ServiceSimulator, tmp_path: Path) -> None:
    simulator.create_webhook_workflow("a", path="a")
    simulator.create_webhook_workflow("b", path="b" * 5_000)

    said = ended(
        simulator,
        "from airflow_provider_service._core.instances.export import ExportSelection, exported, write_folder",
        f"write_folder({str(tmp_path)!r}, exported(client, ExportSelection()), remove_stale=True)",
        limit=4_000,
    )

    assert f"The export to {tmp_path} is incomplete: 1 workflows were written before the error" in said
    assert f"{tmp_path}/b.json could not be written: File too large, after 4,000 bytes" in said
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_a_load_names_the_folder_of_its_temporary_file(simulator: ServiceSimulator) -> None:
    said = ended(
        simulator,
        "from airflow_provider_service._core.rows.target import LoadOptions, TableTarget; "
        "table = client.data_tables.create('t', [{'name': 'a', 'type': 'string'}])",
        "TableTarget(client, table).load("
        "lambda note: ({'a': 'x' * 10_000} for _ in range(5_000)), LoadOptions(mode='append'))",
    )

    assert "ServiceError False rows could not be kept in a temporary file: disk I/O error. It needs space" in said
    assert "TMPDIR chooses its folder" in said
