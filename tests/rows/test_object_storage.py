"""Files are complete or absent, on a disk and in object storage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from airflow_provider_service._core.object_storage import address_of, reading, require_place, whole_file, write_whole
from airflow_provider_service.client.errors import ServiceInputError
from tests.s3 import Bucket

#: More than is sent at a time.
LARGE = 9 * 1024 * 1024
#: Some storages take such names for patterns.
NAMES = ("rows.csv", "a[1]*?.csv", "ä b#1.csv")


def read(path, **options):
    with reading("path", path, **options) as file:
        return file.read()


def fail_after(path, size):
    with whole_file("path", path) as file:
        file.write(b"x" * size)
        raise KeyError


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read(bucket: Bucket, tmp_path: Path, name: str) -> None:
    key = name.replace("?", "").replace("#", "")  # these end the path of an address
    for path in (bucket.address(f"x/{key}"), bucket.path(f"y/{key}"), tmp_path / name, str(tmp_path / name)):
        with whole_file("path", path) as file:
            file.write(b"x" * LARGE)
            file.write(b"end")
        assert read(path) == b"x" * LARGE + b"end"
    assert bucket.keys() == [f"x/{key}", f"y/{key}"]
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_connection_is_named_in_the_address_or_beside_it(bucket: Bucket) -> None:
    plain = f"s3://{bucket.name}/x.csv"
    with whole_file("path", plain, conn_id=bucket.conn_id) as file:
        file.write(b"rows")
    assert read(plain, conn_id=bucket.conn_id) == read(bucket.address("x.csv")) == read(bucket.path("x.csv")) == b"rows"
    for path, conn_id in ((plain, bucket.conn_id), (bucket.address("x.csv"), None), (bucket.path("x.csv"), None)):
        assert address_of(path, conn_id=conn_id) == bucket.address("x.csv")


def test_an_empty_file_is_written_too(bucket: Bucket) -> None:
    assert write_whole(bucket.address("empty"), b"") == bucket.address("empty")
    assert (bucket.keys(), bucket.read("empty")) == (["empty"], b"")


@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize("is_there", [False, True])
def test_after_an_error_what_was_there_is_unchanged(bucket: Bucket, tmp_path: Path, is_there: bool, size: int) -> None:
    local = tmp_path / "rows.csv"
    if is_there:
        bucket.write("rows.csv", b"earlier")
        local.write_bytes(b"earlier")
    for path in (bucket.address("rows.csv"), local):
        with pytest.raises(KeyError):
            fail_after(path, size)
    assert bucket.keys() == [one.name for one in tmp_path.iterdir()] == ["rows.csv"] * is_there
    if is_there:
        assert bucket.read("rows.csv") == local.read_bytes() == b"earlier"


def test_a_name_in_gz_is_compressed_and_equal_contents_are_equal_files(bucket: Bucket, tmp_path: Path) -> None:
    for path in (bucket.address("rows.csv.gz"), tmp_path / "rows.csv.gz", tmp_path / "other.gz"):
        with whole_file("path", path) as file:
            file.write(b"rows")
        assert read(path) == b"rows"
    assert gzip.decompress(bucket.read("rows.csv.gz")) == b"rows"
    assert bucket.read("rows.csv.gz") == (tmp_path / "rows.csv.gz").read_bytes() == (tmp_path / "other.gz").read_bytes()


@pytest.mark.parametrize("cut", [slice(None, -9), slice(3, None), slice(None, 5), slice(0, 40)])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, cut: slice) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 100)[cut])
    with pytest.raises(ServiceInputError, match=r"^path '.*rows\.csv\.gz' is not a complete gzip file: "):
        read(str(path))


def test_places_that_can_never_be_written_are_refused(bucket: Bucket, tmp_path: Path) -> None:
    require_place("p", bucket.address("new/key"))
    require_place("p", tmp_path / "new")
    for path, message in (
        (str(tmp_path / "none" / "x"), "the directory of p '.*/none/x' does not exist"),
        (f"file://{tmp_path}/none/x", "the directory of p '.*/none/x' does not exist"),
        (tmp_path, "p '.*' is a directory"),
        ("s4://bucket/x", "p 's4://bucket/x' cannot be used: "),
        ("", "p must be a path or an address of object storage, not ''"),
        (3, "p must be a path or an address of object storage, not 3"),
        (None, "p must be a path or an address of object storage, not None"),
    ):
        with pytest.raises(ServiceInputError, match=f"^{message}"):
            require_place("p", path)


def test_a_file_that_is_not_there(bucket: Bucket, tmp_path: Path) -> None:
    for path in (bucket.address("none"), tmp_path / "none"):
        with pytest.raises(FileNotFoundError):
            read(path)
