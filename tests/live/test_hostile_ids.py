"""A real server keeps ids that its users choose: an export and a backup of such an instance stay where they belong."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from airflow_provider_service._core.instances.export import ExportSelection, exported, write_folder
from airflow_provider_service._core.instances.references import Gaps
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceInputError
from tests.instances.workflows import node, webhook, workflow

from .conftest import MakeServer
from .running import connect, deploy
from .servers import LiveServer
from .test_backup import back_up, restore

HOSTILE = "../../../../dags/x"
FILES = [f"shared ({one * 16}){ending}" for one in "-z" for ending in (".json", "/Code.py")]
CODE = node("Code", "code", {"language": "python", "pythonCode": "import os\nos.system('id')\n"})


@pytest.fixture(scope="module")
def odd_server(make_server: MakeServer) -> Iterator[LiveServer]:
    """A server with three workflows of one name, of which one has an id that leads out of a folder."""
    with make_server() as server:
        for one in ("-" * 16, HOSTILE, "zzzzzzzzzzzzzzzz"):
            made = workflow("shared", webhook(uuid.uuid4().hex), CODE, id=one, active=False)
            given = server.owner.create_workflow(made)["id"]
            if server.generation.major == 1:
                assert given != one
                pytest.skip("this generation gives workflows ids of its own")
            assert given == one
        yield server


@pytest.fixture
def client(odd_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceClient]:
    with connect(monkeypatch, odd_server) as client:
        yield client


def below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_the_service_keeps_ids_that_its_users_choose(client: ServiceClient) -> None:
    assert HOSTILE in {one.id for one in client.workflows.list()}
    with pytest.raises(ServiceInputError, match="cannot be used as an id"):
        client.workflows.get(HOSTILE)


def test_an_export_stays_in_its_folder_and_can_be_deployed(client: ServiceClient, tmp_path: Path) -> None:
    folder, left_out = tmp_path / "a/b/c/d/export", Gaps()
    write_folder(str(folder), exported(client, ExportSelection(), left_out=left_out), code_files=True)
    assert [gap.what for gap in left_out] == [f"workflow 'shared' with the id '{HOSTILE}'"]
    assert below(tmp_path) == {f"a/b/c/d/export/{one}" for one in FILES}
    assert list(deploy(client, [str(folder)])) == ["unchanged"]


def test_a_backup_names_it_and_can_be_restored(
    client: ServiceClient, make_server: MakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "backup.zip"
    made = back_up(client, path)
    assert made.counts["workflows"] == 2
    assert f"workflow 'shared' with the id '{HOSTILE}'" in {gap.what for gap in made.gaps}
    with ZipFile(path) as archive:
        assert not [one for one in archive.namelist() if "dags" in one]
    with make_server() as other, connect(monkeypatch, other) as there:
        restore(there, path)
        assert {one.name for one in there.workflows.list()} == {f"shared ({one * 16})" for one in "-z"}
        assert restore(there, path).is_empty
