"""Archives that are damaged, or made to do harm: everything is refused before anything is written."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.instances import backup_archive
from airflow_provider_service._core.instances.backup_archive import ArchiveReader
from airflow_provider_service._core.instances.restore_reading import read_backup
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

from .contents import fill

Members = dict[str, bytes]


@pytest.fixture
def members(client, execute, tmp_path) -> Members:
    fill(client)
    path = tmp_path / "backup.zip"
    execute(ServiceBackupOperator, path=str(path))
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: Members, compression: int = ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with ZipFile(file, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def signed(members: Members) -> Members:
    """The members with a manifest that fits them, as an attacker would create it."""
    manifest = json.loads(members["manifest.json"])
    others = {name: data for name, data in members.items() if name != "manifest.json"}
    manifest["members"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in others.items()
    }
    return {**others, "manifest.json": json.dumps(manifest).encode()}


def read(data: bytes, **options: Any) -> None:
    read_backup(ArchiveReader(io.BytesIO(data), **options))


def in_contents(members: Members, change: Callable[[Any], None]) -> Members:
    contents = json.loads(members["contents.json"])
    change(contents)
    return signed({**members, "contents.json": json.dumps(contents).encode()})


def test_what_was_not_changed_is_read(members):
    read(packed(members))
    read(packed(signed(members)))


def test_every_changed_or_missing_part_is_noticed(members):
    for name, data in members.items():
        missing = {one: content for one, content in members.items() if one != name}
        with pytest.raises(ServiceInputError, match="cannot be restored"):
            read(packed(missing))
        if name != "manifest.json":
            with pytest.raises(ServiceInputError, match="does not have the size"):
                read(packed({**members, name: data + b" "}))
    changed = members["data_tables/stock.jsonl"].replace(b"=1+1", b"=1+2")
    with pytest.raises(ServiceInputError, match=r"data_tables/stock\.jsonl does not have the checksum"):
        read(packed({**members, "data_tables/stock.jsonl": changed}))
    with pytest.raises(ServiceInputError, match=r"do not agree on 'more\.txt'"):
        read(packed({**members, "more.txt": b""}))


def test_an_archive_cut_off_or_flipped_anywhere_is_refused(members):
    data = packed(members)
    for length in (0, 1, 21, 22, len(data) // 2, len(data) - 1):
        with pytest.raises(ServiceInputError):
            read(data[:length])
    for place in range(0, len(data), 97):
        flipped = bytearray(data)
        flipped[place] ^= 0xFF
        try:
            read(bytes(flipped))
        except ServiceInputError:
            continue
        # A date, an attribute or another field of the container that says nothing of the content.
        with ZipFile(io.BytesIO(bytes(flipped))) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == members


@pytest.mark.parametrize("name", ["/etc/x.json", "../x.json", "workflows/../../x.json", "workflows\\x.json", "a//b"])
def test_paths_that_lead_out_are_refused(members, name):
    with pytest.raises(ServiceInputError, match=r"is not the name of a member|do not agree"):
        read(packed(signed({**members, name: b"{}"})))


def test_bombs_are_refused_before_they_are_unpacked(members, monkeypatch):
    bomb = signed({**members, "data_tables/stock.jsonl": b"\n" * 20_000_000})
    data = packed(bomb)
    assert len(data) < 100_000
    with pytest.raises(ServiceInputError, match="when unpacked, more than the limit of 10,000,000"):
        read(data, max_bytes=10_000_000)
    monkeypatch.setattr(backup_archive, "MAX_JSON_BYTES", 1_000_000)
    one_line = signed({**members, "data_tables/stock.jsonl": b"[" * 3_000_000})
    with pytest.raises(ServiceInputError, match="a line that is too long"):
        read(packed(one_line))
    with pytest.raises(ServiceInputError, match=r"contents\.json is too large"):
        read(packed(signed({**members, "contents.json": b" " * 2_000_000 + members["contents.json"]})))


def test_a_size_in_the_list_that_is_a_lie(members):
    data = packed(signed({**members, "data_tables/stock.jsonl": b"\n" * 100_000}))
    small = struct.pack("<L", 99_999)
    with pytest.raises(ServiceInputError):
        read(data.replace(struct.pack("<L", 100_000), small))


def test_a_long_list_of_members_is_refused_before_it_is_read(monkeypatch, members):
    monkeypatch.setattr(backup_archive, "MAX_LIST_BYTES", 100)
    with pytest.raises(ServiceInputError, match="too many members"):
        read(packed(members))


def test_other_compressions_are_refused_and_none_is_fine(members):
    read(packed(members, ZIP_STORED))
    for compression in (ZIP_BZIP2, ZIP_LZMA):
        with pytest.raises(ServiceInputError, match="a compression method other than deflate"):
            read(packed(members, compression))


def test_members_of_the_same_name_are_refused(members):
    file = io.BytesIO(packed(members))
    with warnings.catch_warnings(), ZipFile(file, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("contents.json", members["contents.json"])
    with pytest.raises(ServiceInputError, match="several members of the same name"):
        read(file.getvalue())


def test_contents_of_another_form_are_refused_without_showing_values(members):
    def wrong(contents: Any) -> None:
        contents["variables"] = [{"key": "A", "value": ["top-secret"]}]

    with pytest.raises(ServiceInputError, match=r"form of a backup: variables\.0\.value") as caught:
        read(packed(in_contents(members, wrong)))
    assert "top-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one["data_tables"][1].update(rows=4), "has 5 rows, not 4"),
        (lambda one: one["data_tables"][1]["columns"].pop(), "row 1 has unknown columns 'd'"),
        (lambda one: one["data_tables"][1]["columns"][1].update(type="boolean"), "is not a value of type boolean"),
        (lambda one: one["data_tables"][1]["columns"].append({"name": "S", "type": "string"}), "regardless of case"),
        (lambda one: one["data_tables"].append(dict(one["data_tables"][0])), "do not agree"),
        (lambda one: one["data_tables"][0].update(file="contents.json"), "do not agree"),
        (lambda one: one["data_tables"][1]["columns"][1].update(type="x"), "form of a backup"),
        (lambda one: one.pop("tags"), "form of a backup: tags"),
    ],
)
def test_tables_that_do_not_fit_their_rows_are_refused(members, change, words):
    with pytest.raises(ServiceInputError, match=words):
        read(packed(in_contents(members, change)))


@pytest.mark.parametrize(
    "data",
    [b"[]", b"{", b'{"id": "x", "definition": {"name": "x"}}', b'{"id": 1}', b"[" * 100_000, b"9" * 5000, b"\xff"],
)
def test_workflows_of_another_form_are_refused(members, data):
    with pytest.raises(ServiceInputError):
        read(packed(signed({**members, "workflows/child.json": data})))


def test_a_workflow_with_an_odd_node_is_refused_and_named(members):
    entry = json.loads(members["workflows/child.json"])
    entry["definition"]["nodes"][0]["parameters"] = "x"
    problem = r"parameters of nodes\[0\] of its definition must be a mapping, not str; nothing was written"
    with pytest.raises(ServiceInputError, match=f"workflow {entry['id']}: {problem}"):
        read(packed(signed({**members, "workflows/child.json": json.dumps(entry).encode()})))


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"format": "x"}, {"members": []}, {"members": {"a": {"bytes": -1}}}]
)
def test_manifests_of_another_form_are_refused(members, change):
    manifest = {**json.loads(members["manifest.json"]), **change}
    with pytest.raises(ServiceInputError, match="cannot be restored"):
        read(packed({**members, "manifest.json": json.dumps(manifest).encode()}))


def test_the_operator_writes_nothing_of_a_hostile_archive(execute, members, second, tmp_path: Path):
    path = tmp_path / "hostile.zip"
    path.write_bytes(packed(signed({**members, "../x.json": b"{}"})))
    second.clear_requests()
    with pytest.raises(AirflowFailException, match="cannot be restored"):
        execute(ServiceRestoreOperator, path=str(path), service_conn_id="production", on_conflict="update")
    assert second.requests == []
    path.write_bytes(packed(members))
    with pytest.raises(AirflowFailException, match="more than the limit of 1,000;"):
        execute(ServiceRestoreOperator, path=str(path), service_conn_id="production", max_unpacked_bytes=1000)
