"""A number of backups is kept: older ones are deleted, and no file that may be something else."""

from __future__ import annotations

import json
import logging
import os
import shutil
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceError, ServiceInputError
from airflow_provider_service.operators.backups import ServiceBackupOperator

from .workflows import child


@pytest.fixture
def folder(tmp_path, deploy):
    deploy([child()])
    found = tmp_path / "backups"
    found.mkdir()
    return found


@pytest.fixture
def back_up(execute, folder):
    return lambda name, **arguments: execute(ServiceBackupOperator, path=str(folder / name), **arguments)


def names(folder):
    return sorted(one.name for one in folder.iterdir())


def rewritten(source, target, **changes):
    """A copy of an archive with another manifest."""
    with ZipFile(source) as archive, ZipFile(target, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "manifest.json":
                data = json.dumps({**json.loads(data), **changes}).encode()
            copy.writestr(name, data)


@pytest.mark.parametrize(("keep", "kept"), [(None, "abcd"), (1, "d"), (2, "cd"), (3, "bcd"), (4, "abcd"), (9, "abcd")])
def test_the_newest_are_kept(back_up, folder, keep, kept):
    # Names say nothing about the age.
    for name in "zyx":
        back_up(f"{name}.zip")
    done = back_up("d.zip", keep=keep)
    renamed = dict(zip("zyxd", "abcd", strict=True))
    assert sorted(renamed[name[0]] for name in names(folder)) == list(kept)
    assert done["deleted"] == 4 - len(kept)


def test_what_is_not_known_to_be_a_backup_of_the_instance_is_kept(back_up, folder, tmp_path, execute, second, caplog):
    caplog.set_level(logging.INFO, logger="airflow_provider_service")
    back_up("old.zip")
    (folder / "sub").mkdir()
    shutil.copy(folder / "old.zip", folder / "sub" / "deep.zip")
    shutil.copy(folder / "old.zip", folder / "other ending.zip.bak")
    shutil.copy(folder / "old.zip", folder / ".hidden.zip")
    shutil.copy(folder / "old.zip", tmp_path / "elsewhere.zip")
    (folder / "link.zip").symlink_to(tmp_path / "elsewhere.zip")
    (folder / "link within.zip").symlink_to(folder / "sub" / "deep.zip")
    (folder / "directory.zip").mkdir()
    (folder / "truncated.zip").write_bytes((folder / "old.zip").read_bytes()[:-10])
    (folder / "text.zip").write_text("no archive")
    rewritten(folder / "old.zip", folder / "no date.zip", made_at="yesterday")
    rewritten(folder / "old.zip", folder / "no text.zip", made_at=None)
    rewritten(folder / "old.zip", folder / "newer form.zip", version=2)
    rewritten(folder / "old.zip", folder / "of others.zip", format="other backup")
    rewritten(folder / "old.zip", folder / "future.zip", made_at="2999-01-01T00:00:00Z")
    with ZipFile(folder / "photos.zip", "w") as archive:
        archive.writestr("manifest.json", "{}")
    execute(ServiceBackupOperator, path=str(folder / "second.zip"), service_conn_id="production")
    before = names(folder)
    assert back_up("new.zip", keep=1)["deleted"] == 1
    assert names(folder) == sorted({*before, "new.zip"} - {"old.zip"})
    assert (tmp_path / "elsewhere.zip").exists()
    assert "truncated.zip in" in caplog.text


def test_those_that_are_not_older_count(back_up, folder):
    back_up("old.zip")
    back_up("older.zip")
    rewritten(folder / "old.zip", folder / "future.zip", made_at="2999-01-01T00:00:00Z")
    assert back_up("new.zip", keep=3)["deleted"] == 1
    assert names(folder) == ["future.zip", "new.zip", "older.zip"]


def test_nothing_is_deleted_before_the_new_one_is_complete(back_up, folder, simulator):
    back_up("old.zip")
    simulator.inject("status", status=500, method="GET", path="/workflows", times=None)
    with pytest.raises(ServiceError):
        back_up("new.zip", keep=1)
    assert names(folder) == ["old.zip"]


def test_a_repeat_replaces_its_own_archive_and_deletes_what_was_left(back_up, folder):
    for name in ("a.zip", "b.zip", "b.zip"):
        back_up(name)
    assert back_up("b.zip", keep=1)["deleted"] == 1
    assert names(folder) == ["b.zip"]


def test_in_the_current_folder(execute, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("a.zip", "b.zip"):
        done = execute(ServiceBackupOperator, path=name, keep=1)
    assert (done["deleted"], names(folder)) == (1, ["b.zip"])


@pytest.mark.slow
def test_in_object_storage(execute, deploy, bucket):
    deploy([child()])
    bucket.write("other/a.zip", b"PK")
    bucket.write("backups/a.txt", b"text")
    for name in ("a", "deep/b", "c", "d"):
        done = execute(ServiceBackupOperator, path=bucket.address(f"backups/{name}.zip"), keep=2)
    assert done["deleted"] == 1
    assert bucket.keys() == ["backups/a.txt", "backups/c.zip", "backups/d.zip", "backups/deep/b.zip", "other/a.zip"]


def test_what_cannot_be_deleted_fails_the_task_and_the_backup_stays(back_up, folder, monkeypatch):
    for name in ("a.zip", "b.zip", "c.zip"):
        back_up(name)

    def refuse(path, *_args, **_options):
        if str(path).endswith("a.zip"):
            raise PermissionError(13, "Permission denied")
        remove(path)

    remove = os.remove
    monkeypatch.setattr("os.remove", refuse)
    with pytest.raises(
        ServiceError, match=r"d\.zip is complete, but older backups could not be deleted: a\.zip"
    ) as caught:
        back_up("d.zip", keep=1)
    assert not caught.value.final
    assert names(folder) == ["a.zip", "d.zip"]


@pytest.mark.parametrize("keep", [0, -1, True, 1.5, "all"])
def test_a_number_that_would_keep_none_is_refused_when_the_task_is_made(keep):
    with pytest.raises(ServiceInputError, match="keep must be a whole number from 1"):
        ServiceBackupOperator(task_id="t", path="a.zip", keep=keep)


def test_such_a_number_is_refused_in_a_mapped_task_too(execute, folder):
    with pytest.raises((AirflowFailException, ServiceInputError), match="keep must be a whole number from 1"):
        ServiceBackupOperator.partial(task_id="t", keep=0)


def test_a_manifest_that_takes_much_memory_is_not_read(back_up, folder, caplog):
    caplog.set_level(logging.INFO, logger="airflow_provider_service")
    with ZipFile(folder / "bomb.zip", "w", ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b'{"x":[' + b"[]," * 2_000_000 + b"[]]}")
    assert back_up("new.zip", keep=1)["deleted"] == 0
    assert "bomb.zip" in names(folder)
    assert "manifest.json is too large" in caplog.text
