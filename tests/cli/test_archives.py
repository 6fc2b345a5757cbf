"""``export``, ``backup`` and ``restore``: what exists is replaced only with consent."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def filled(cli, folder):
    assert cli("deploy", folder, "--yes").status == 0


def test_an_export_can_be_deployed_again(cli, filled, tmp_path):
    ended = cli("export", tmp_path / "new", "--json")

    assert (ended.status, ended.result["workflows"]) == (0, 2)
    assert sorted(one.name for one in (tmp_path / "new").iterdir()) == ["child.json", "parent.json"]
    assert cli("plan", tmp_path / "new", "--detailed-exitcode").status == 0


def test_an_export_of_a_selection(cli, filled, tmp_path):
    assert cli("export", tmp_path / "new", "--workflow-names", "child").status == 0

    assert [one.name for one in (tmp_path / "new").iterdir()] == ["child.json"]


def test_stale_files_are_removed_only_with_consent(cli, filled, tmp_path):
    assert cli("export", tmp_path / "new").status == 0
    narrower = ("export", tmp_path / "new", "--workflow-names", "child", "--remove-stale")

    assert cli(*narrower, answer="n").status == 1
    assert (tmp_path / "new" / "parent.json").exists()
    ended = cli(*narrower, "--yes", "--json")
    assert (ended.status, ended.result["removed"]) == (0, ["parent.json"])
    assert not (tmp_path / "new" / "parent.json").exists()


def test_an_export_replaces_files_only_with_consent(cli, filled, folder):
    before = (folder / "child.json").read_text()

    assert cli("export", folder).status == 2
    assert cli("export", folder, answer="n").status == 1
    assert (folder / "child.json").read_text() == before
    assert cli("export", folder, "--yes").status == 0
    assert (folder / "child.json").read_text() != before


def test_a_backup_is_restored_into_another_instance(cli, filled, second_client, tmp_path):
    archive = tmp_path / "all.zip"
    saved = cli("backup", archive, "--json")
    assert (saved.status, saved.result["counts"]["workflows"]) == (0, 2)
    restore = ("restore", archive, "--conn-id", "production")

    preview = cli(*restore, "--preview", "--detailed-exitcode")
    assert (preview.status, list(second_client.workflows.list())) == (3, [])
    restored = cli(*restore, "--yes", "--json")
    assert (restored.status, restored.result["outcome"]) == (0, "restored")
    assert sorted(one.name for one in second_client.workflows.list()) == ["child", "parent"]
    assert cli(*restore, "--preview", "--detailed-exitcode").status == 0


def test_a_backup_replaces_a_file_only_with_consent(cli, filled, tmp_path):
    archive = tmp_path / "all.zip"
    archive.write_text("old")

    assert cli("backup", archive).status == 2
    assert archive.read_text() == "old"
    assert cli("backup", archive, answer="y").status == 0
    assert archive.read_bytes()[:2] == b"PK"


def test_older_backups_are_deleted_only_with_consent(cli, filled, tmp_path):
    for name in ("a", "b"):
        assert cli("backup", tmp_path / f"{name}.zip").status == 0

    assert cli("backup", tmp_path / "c.zip", "--keep", "2").status == 2
    assert cli("backup", tmp_path / "c.zip", "--keep", "2", answer="n").status == 1
    assert cli("backup", tmp_path / "c.zip", "--keep", "0", "--yes").status == 2
    assert sorted(one.name for one in tmp_path.glob("*.zip")) == ["a.zip", "b.zip"]
    assert cli("backup", tmp_path / "c.zip", "--keep", "2", "--yes", "--json").result["deleted"] == 1
    assert sorted(one.name for one in tmp_path.glob("*.zip")) == ["b.zip", "c.zip"]
    assert "Older backups deleted: 1" in cli("backup", tmp_path / "d.zip", "--keep", "2", answer="y").out


def test_a_restore_over_objects_that_differ(cli, client, filled, folder, tmp_path):
    cli("backup", tmp_path / "all.zip")
    changed = json.loads((folder / "child.json").read_text())
    changed["nodes"][0]["name"] = "Renamed"
    (folder / "child.json").write_text(json.dumps(changed))
    cli("deploy", folder, "--yes")

    refused = cli("restore", tmp_path / "all.zip", "--yes")
    assert refused.status == 1
    assert "differ from those of the backup, and nothing was written" in refused.err
    assert cli("restore", tmp_path / "all.zip", "--yes", "--on-conflict", "update").status == 0
    [held] = [one for one in client.workflows.list() if one.name == "child"]
    assert [one["name"] for one in held.nodes] == ["Start"]


def test_a_part_of_a_backup_under_other_names(cli, filled, second_client, tmp_path):
    cli("backup", tmp_path / "all.zip")
    mapping = tmp_path / "production.yaml"
    mapping.write_text("workflows: {child: kid}")
    restore = ("restore", tmp_path / "all.zip", "--conn-id", "production", "--mapping", mapping, "--yes")

    assert cli(*restore, "--kinds", "folders").status == 2
    assert cli(*restore, "--names", "nobody").status == 1
    assert cli(*restore, "--kinds", "workflows", "--names", "child").status == 0
    assert [one.name for one in second_client.workflows.list()] == ["kid"]
    mapping.write_text("workflow: {}")
    assert cli(*restore).status == 2


def test_wrong_paths(cli, tmp_path):
    (tmp_path / "broken.zip").write_text("no archive")

    assert cli("backup", tmp_path / "all.tar").status == 2
    assert cli("backup", tmp_path / "nowhere" / "all.zip").status == 2
    assert cli("restore", tmp_path / "none.zip", "--yes").err.startswith("Error: there is no file")
    assert cli("restore", tmp_path / "broken.zip", "--yes").status == 1
