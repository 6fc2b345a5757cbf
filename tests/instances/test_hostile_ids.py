"""Ids and names that users of the service have chosen to do harm: nothing leaves its folder, and nothing is lost."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize
from zipfile import ZipFile

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.instances.backup_archive import ArchiveWriter
from airflow_provider_service._core.instances.export import write_folder
from airflow_provider_service._core.object_storage import StoredFolder, write_whole
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.operators.instances import ServiceExportWorkflowsOperator, ServicePromoteWorkflowsOperator

from .workflows import address, node, webhook, workflow

HOSTILE = "../../../../dags/x"
CODE = node("Code", "code", {"pythonCode": "import os\nos.system('id')\n"})
OUTSIDE = ["../x", "a/../../x", "/x", "..", ".", "", "a//b", "a\\..\\x", "a/./b", "a\x00b", "a\nb"]


@pytest.fixture
def plant(simulator) -> Callable[..., str]:
    """``plant(id)`` puts a workflow with an id of its user's choice into the instance, as the editor's API allows."""

    def put(workflow_id: str, name: str = "x", *nodes: dict[str, Any]) -> str:
        body = workflow(name, *(nodes or (webhook(name), CODE)))
        simulator.in_loop(lambda: simulator.state.workflows.create(body, workflow_id=workflow_id))
        return workflow_id

    return put


@pytest.fixture
def unrestorable(client, simulator) -> Callable[[], None]:
    """``unrestorable()`` gives the instance a row that no restore can insert, because a number is not one."""

    def make() -> None:
        table = client.data_tables.create("stock", [{"name": "n", "type": "number"}])
        client.data_table_rows.insert(table.id, [{"n": 1}])
        [row] = simulator.state.data_tables.get(table.id).rows
        simulator.in_loop(lambda: row.update(n="many"))

    return make


def below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_an_export_stays_in_its_folder_and_says_what_it_left_out(execute, plant, tmp_path, caplog):
    plant("-" * 16)
    plant(HOSTILE)
    folder = tmp_path / "a/b/c/d/export"
    done = execute(ServiceExportWorkflowsOperator, path=str(folder), code_files=True)
    assert below(tmp_path) == ["a/b/c/d/export/x.json", "a/b/c/d/export/x/Code.py"]
    [gap] = done["left_out"]
    assert (done["workflows"], gap["what"]) == (1, f"workflow 'x' with the id '{HOSTILE}'")
    assert f"Left out: {gap['what']}: the id cannot be used as an id" in caplog.text


def test_an_export_of_it_by_name_and_a_promotion_are_refused(execute, plant, tmp_path, second):
    plant(HOSTILE)
    with pytest.raises(AirflowFailException, match="cannot be used as an id"):
        execute(ServiceExportWorkflowsOperator, path=str(tmp_path / "export"), workflow_names=["x"])
    assert below(tmp_path) == []
    with pytest.raises(AirflowFailException, match="cannot be used as an id"):
        execute(
            ServicePromoteWorkflowsOperator,
            source_conn_id="service_default",
            service_conn_id="production",
            workflow_names=["x"],
        )


def test_a_backup_names_what_it_cannot_hold_and_the_rest_is_restored(
    execute, client, second_client, plant, tmp_path, second
):
    plant("-" * 16)
    plant("0" * 16)
    plant(HOSTILE)
    path = str(tmp_path / "backup.zip")
    made = execute(ServiceBackupOperator, path=path)
    assert made["counts"]["workflows"] == 2
    assert f"workflow 'x' with the id '{HOSTILE}'" in [one["what"] for one in made["left_out"]]
    with ZipFile(path) as archive:
        assert [one for one in archive.namelist() if "dags" in one] == []
    execute(ServiceRestoreOperator, path=path, service_conn_id="production")
    assert sorted(one.name for one in second_client.workflows.list()) == [f"x ({one * 16})" for one in "-0"]


def test_a_table_that_cannot_be_read_by_its_id_is_a_gap(execute, client, simulator, tmp_path):
    table = client.data_tables.create("stock", [{"name": "n", "type": "number"}])

    simulator.in_loop(lambda: setattr(simulator.state.data_tables.get(table.id), "id", HOSTILE))
    made = execute(ServiceBackupOperator, path=str(tmp_path / "backup.zip"))
    assert f"data table 'stock' with the id '{HOSTILE}'" in [one["what"] for one in made["left_out"]]
    assert made["counts"]["data_tables"] == 0


def test_an_archive_that_could_not_be_restored_fails_the_backup_and_the_former_one_stays(
    execute, unrestorable, tmp_path
):
    path = tmp_path / "backup.zip"
    execute(ServiceBackupOperator, path=str(path))
    before = path.read_bytes()
    unrestorable()
    with pytest.raises(AirflowFailException, match="data table 'stock', row 1, column 'n': 'many' is not"):
        execute(ServiceBackupOperator, path=str(path))
    assert path.read_bytes() == before
    assert below(tmp_path) == ["backup.zip"]


@pytest.mark.slow
def test_a_backup_in_object_storage_is_read_back_as_well(execute, unrestorable, bucket):
    execute(ServiceBackupOperator, path=bucket.address("backup.zip"))
    before = bucket.files.cat(f"{bucket.name}/backup.zip")
    unrestorable()
    with pytest.raises(AirflowFailException, match="row 1, column 'n': 'many' is not"):
        execute(ServiceBackupOperator, path=bucket.address("backup.zip"))
    assert bucket.files.cat(f"{bucket.name}/backup.zip") == before
    assert bucket.files.ls(bucket.name, detail=False) == [f"{bucket.name}/backup.zip"]


def test_a_definition_gets_no_id_that_the_service_could_take_for_an_expression(deploy, plant):
    plant("={{ $env.KEY }}", "called")
    caller = workflow("caller", node("Call", "executeWorkflow", {"workflowId": address({"name": "called"})}))
    with pytest.raises(ServiceInputError, match=r"'caller', node 'Call': the id of workflow 'called' cannot be used"):
        deploy([caller])


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_file_is_written_or_read_outside_of_a_folder(path, tmp_path, bucket):
    for folder in (str(tmp_path / "folder"), bucket.address("folder")):
        stored = StoredFolder("path", folder)
        stored.make()
        for attempt in (lambda one: one.write(path, b"x"), lambda one: one.read(path)):
            with pytest.raises(ServiceInputError, match="is not below the folder"):
                attempt(stored)
    assert below(tmp_path) == []
    assert bucket.files.ls(bucket.name) == []


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_member_is_written_outside_of_an_archive(path, tmp_path):
    with (tmp_path / "x.zip").open("wb") as file:
        archive = ArchiveWriter(file)
        with pytest.raises(ServiceInputError, match="cannot be the name of another member"):
            archive.write_json(path, {})
        archive.write_json("a.json", {})
        with pytest.raises(ServiceInputError, match="cannot be the name of another member"):
            archive.write_json("a.json", {})
        archive.abandon()


def test_a_symbolic_link_does_not_lead_out_of_a_folder(tmp_path, deploy):
    secret = tmp_path / "secret"
    secret.write_text("top-secret")
    folder = tmp_path / "folder"
    (folder / "one").mkdir(parents=True)
    (folder / "one/Code.py").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    (folder / "round").symlink_to(folder / "round")
    stored = StoredFolder("source", str(folder))
    for path in ("one/Code.py", "up/secret", "round", "round/x"):
        with pytest.raises(ServiceInputError):
            stored.read(path)
        with pytest.raises(ServiceInputError):
            stored.write(path, b"x")
    assert secret.read_text() == "top-secret"
    (folder / "up").unlink()
    code = node("Code", "code", {"pythonCode": {"file": "one/Code.py"}})
    (folder / "one.json").write_text(json.dumps(workflow("one", code)))
    with pytest.raises(ServiceInputError, match=r"'one/Code\.py' is not below the folder") as refused:
        deploy(str(folder))
    assert "top-secret" not in str(refused.value)


@pytest.mark.parametrize("target", ["inside", "outside"])
def test_a_link_to_a_folder_is_refused_rather_than_left_out(tmp_path, target):
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (folder / "linked").symlink_to((folder if target == "inside" else tmp_path) / target)
    stored = StoredFolder("source", str(folder))
    with pytest.raises(ServiceInputError, match="'linked' is a symbolic link to a folder; replace it"):
        stored.files(".json")
    assert stored.files(".json", depth=1) == []
    (folder / "one.json").write_text("{}")
    assert StoredFolder("source", str(folder / "one.json")).files(".json") == ["one.json"]
    (folder / "linked").rename(folder / ".linked")
    assert stored.files(".json") == ["one.json"]


def test_a_folder_that_cannot_be_listed_is_an_error():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        locked = Path(folder) / "locked"
        locked.mkdir()
        locked.chmod(0)
        if is_root := os.geteuid() == 0:  # which may list everything
            os.seteuid(65534)
        try:
            with pytest.raises(ServiceInputError, match=r"cannot be used: .*Permission denied"):
                StoredFolder("source", folder).files(".json")
        finally:
            if is_root:
                os.seteuid(0)
            locked.chmod(0o755)


def test_a_folder_that_is_itself_a_link_and_links_within_it_are_followed(tmp_path, deploy):
    current = tmp_path / "revision-1"
    (current / "data").mkdir(parents=True)
    (current / "data/one").write_text(json.dumps(workflow("one", webhook("one"))))
    (current / "one.json").symlink_to("data/one")
    (tmp_path / "current").symlink_to(current)
    assert deploy(str(tmp_path / "current")) == {"create": ["one"]}
    stored = StoredFolder("path", str(tmp_path / "current"))
    stored.write("one.json", b"{}")
    assert (current / "data/one").read_bytes() == b"{}"


NAMES = {
    "Chinese": "\u6f22" * 70,
    "emoji": "\N{GRINNING FACE}" * 55,
    "joined emoji": "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}" * 30,
    "half a character": "a\ud800b",
    "a folder": "w",
    "a file": "w.json",
    "letters in another case": "W",
    "one letter": "\u00e9",
    "the same in two": "e\u0301",
    "with an id": "w (1)",
    "another file": "w (1).json",
    "dots": "...",
    "blanks": "   ",
    "of Windows": "a:b*c?",
    "to the left": "\u202egnp.exe",
}


def test_each_workflow_has_its_own_files_whatever_its_name_is(tmp_path):
    named = [*NAMES.values(), "w", "w", *NAMES.values()]
    workflows = [(str(number), workflow(name, webhook("p"), CODE)) for number, name in enumerate(named)]
    written, _ = write_folder(str(tmp_path), workflows, code_files=True)
    assert len({normalize("NFC", one).casefold() for one in written.values()}) == len(named)
    for number, path in written.items():
        definition = json.loads(Path(path).read_text())
        assert definition["name"] == named[int(number)]
        code = definition["nodes"][1]["parameters"]["pythonCode"]["file"]
        assert (tmp_path / code).read_text() == CODE["parameters"]["pythonCode"]
    assert len(below(tmp_path)) == 2 * len(named)
    assert "\u6f22" * 60 in max(written.values(), key=len)


def test_code_that_no_file_can_hold_stays_in_the_definition(tmp_path):
    nodes = [node("Code", "code", {"jsCode": "return '\ud800'\n;"})]
    files, _ = write_folder(str(tmp_path), [("1", workflow("one", *nodes))], code_files=True)
    [path] = files.values()
    assert json.loads(Path(path).read_text())["nodes"] == nodes
    assert below(tmp_path) == ["one.json"]


def test_a_file_whose_name_is_as_long_as_names_can_be_is_written(tmp_path):
    for name in ("x" * 255, "\u6f22" * 85):
        write_whole(str(tmp_path / name), b"x")
        assert (tmp_path / name).read_bytes() == b"x"
