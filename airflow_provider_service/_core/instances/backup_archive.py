"""The archive of a backup: a ZIP file with a manifest, written as a stream, and read as if it had been tampered with.

Nothing of an archive is ever extracted to a disk. Before anything is used, its members are compared with the manifest:
names, sizes and SHA-256. A checksum detects damage; it does not prove who created the archive. The contents, except
rows, are models that are validated when they are read.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Annotated, Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from airflow_provider_service._core.arguments import require
from airflow_provider_service._core.object_storage import require_path, stays_below
from airflow_provider_service._core.rows.options import COLUMN_TYPES
from airflow_provider_service.client._constraints import plain_id
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

#: Names of members and folders in an archive.
MANIFEST, CONTENTS = "manifest.json", "contents.json"
WORKFLOWS, TABLES = "workflows", "data_tables"
FORMAT, VERSION = "airflow-provider-service backup", 1
ENDING = ".zip"
#: Default limit on the unpacked size of all members together.
MAX_UNPACKED_BYTES = 10 * 1024**3
#: Limit on the size of a member that is read whole, and of a line of any other; the service accepts less in a call.
MAX_JSON_BYTES = 64 * 1024**2
#: Limits on the size of the manifest: for what is left out, and for each member. Whatever is in the folder of a
#: backup is read, and a few bytes may unpack to a value that takes gigabytes of memory.
MAX_MANIFEST_BYTES, MAX_ENTRY_BYTES = 4 * 1024**2, 1024
#: Limit on the size of the list of members, which is in memory while the archive is open.
MAX_LIST_BYTES = 16 * 1024**2

_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOCK_BYTES = 1024 * 1024
# The end of central directory record of a ZIP file without a comment, the ZIP64 locator, and the ZIP64 record.
_END, _END_64_PLACE, _END_64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sLQL"), struct.Struct("<4sQ2H2L4Q")
# A fixed date, so that equal contents result in equal files.
_NO_DATE = (1980, 1, 1, 0, 0, 0)


def require_archive(path: object) -> None:
    require_path("path", path)
    require(str(path).endswith(ENDING), f"path must end in {ENDING}, not {str(path)!r}")


class Hashing(io.RawIOBase):
    def __init__(self, target: IO[bytes] | None = None) -> None:
        self.target, self._digest = target, hashlib.sha256()
        self.count = 0
        #: The number of rows, if rows were written.
        self.rows = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.target is not None:
            self.target.write(data)
        self._digest.update(data)
        self.count += len(data)
        return len(data)


class ArchiveWriter:
    def __init__(self, file: IO[bytes]) -> None:
        #: Size and checksum of the archive itself.
        self.written = Hashing(file)
        self._zip = ZipFile(self.written, "w", ZIP_DEFLATED)
        self._members: dict[str, dict[str, Any]] = {}

    @contextmanager
    def member(self, name: str) -> Iterator[Hashing]:
        if not stays_below(name) or name in self._members:
            raise ServiceInputError(f"{shown(name)} cannot be the name of another member of the archive")
        info = ZipInfo(name, _NO_DATE)
        info.compress_type = ZIP_DEFLATED
        with self._zip.open(info, "w", force_zip64=True) as file:
            hashing = Hashing(file)
            yield hashing
        self._members[name] = {"bytes": hashing.count, "sha256": hashing.sha256}

    def write_json(self, name: str, value: Any) -> None:
        with self.member(name) as file:
            text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
            file.write(text.encode(errors="replace"))

    def close(self, manifest: Mapping[str, Any]) -> None:
        members = dict(sorted(self._members.items()))
        self.write_json(MANIFEST, {"format": FORMAT, "version": VERSION, **manifest, "members": members})
        self._zip.close()

    def abandon(self) -> None:
        """Close an incomplete archive without writing to its file any more."""
        self.written.target = None
        self._zip.close()


class ArchiveReader:
    """Reads an archive, after comparing its list of members with its manifest."""

    def __init__(self, file: IO[bytes], *, max_bytes: int = MAX_UNPACKED_BYTES) -> None:
        size = file.seek(0, io.SEEK_END)
        _require_short_list(file, size)
        with _damage_named("the archive"):
            self._zip = ZipFile(file)
        infos = self._zip.infolist()
        _require(all(0 <= info.header_offset < size for info in infos), "its list of members is damaged")
        self._infos = {info.filename: info for info in infos}
        _require(len(infos) == len(self._infos), "it has several members of the same name")
        _require(not any(info.flag_bits & 1 for info in infos), "it has encrypted members")
        # Other methods may take gigabytes of memory to unpack a few bytes.
        is_usual = all(info.compress_type in (ZIP_STORED, ZIP_DEFLATED) for info in infos)
        _require(is_usual, "it has members with a compression method other than deflate")
        #: Unpacked size of all members together.
        self.unpacked_bytes = total = sum(info.file_size for info in infos)
        _require(total <= max_bytes, f"it has {total:,} bytes when unpacked, more than the limit of {max_bytes:,}")
        _require(MANIFEST in self._infos, f"it has no {MANIFEST}")
        self.manifest = self._read_manifest()
        members = self.manifest["members"]
        others = sorted(self._infos.keys() ^ {*members, MANIFEST})
        _require(not others, f"members and {MANIFEST} do not agree on {', '.join(map(shown, others[:5]))}")
        for name, entry in members.items():
            _require(stays_below(name), f"{shown(name)} is not the name of a member")
            _require(self._infos[name].file_size == entry["bytes"], f"{name} does not have the size in {MANIFEST}")

    @property
    def digest(self) -> str:
        """SHA-256 of the checksums of all members: the same for equal contents, whenever the backup was made."""
        members = json.dumps(self.manifest["members"], sort_keys=True)
        return hashlib.sha256(members.encode()).hexdigest()

    def names(self, folder: str) -> list[str]:
        return [name for name in self.manifest["members"] if name.startswith(f"{folder}/")]

    def read_json(self, name: str) -> Any:
        with self.reading(name) as file:
            _require(self._infos[name].file_size <= MAX_JSON_BYTES, f"{name} is too large")
            return _parsed(name, file.read())

    @contextmanager
    def reading(self, name: str) -> Iterator[IO[bytes]]:
        """Open a member as a stream. Its size and checksum are verified at its end."""
        expected = self.manifest["members"].get(name)
        _require(expected is not None, f"it has no {shown(name)}")
        with _damage_named(name), self._zip.open(self._infos[name]) as member:
            raw = _Checked(name, member, expected["bytes"], expected["sha256"])
            with io.BufferedReader(raw, _BLOCK_BYTES) as file:
                yield file

    def _read_manifest(self) -> dict[str, Any]:
        limit = min(MAX_MANIFEST_BYTES + MAX_ENTRY_BYTES * len(self._infos), MAX_JSON_BYTES)
        _require(self._infos[MANIFEST].file_size <= limit, f"{MANIFEST} is too large")
        with _damage_named(MANIFEST), self._zip.open(MANIFEST) as file:
            manifest = _parsed(MANIFEST, file.read(limit))
        _require(isinstance(manifest, dict) and manifest.get("format") == FORMAT, "it is not the archive of a backup")
        _require(manifest.get("version") == VERSION, f"its version is {shown(manifest.get('version'))}, not {VERSION}")
        members = manifest.get("members")
        is_complete = isinstance(members, dict) and all(map(_is_entry, members.values()))
        _require(is_complete, f"{MANIFEST} has no sizes and checksums")
        return dict(manifest)


class _Checked(io.RawIOBase):
    """Reads a member and verifies it against the manifest. Long lines are refused, to save memory."""

    def __init__(self, name: str, member: IO[bytes], size: int, sha256: str) -> None:
        self._name, self._member, self._size, self._sha256 = name, member, size, sha256
        self._digest, self._count, self._line = hashlib.sha256(), 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._member.read(len(buffer))
        self._digest.update(data)
        self._count += len(data)
        _require(self._count <= self._size, f"{self._name} is longer than {MANIFEST} says")
        if not data:
            is_same = self._count == self._size and self._digest.hexdigest() == self._sha256
            _require(is_same, f"{self._name} does not have the checksum in {MANIFEST}")
        last_break = data.rfind(b"\n")
        self._line = self._line + len(data) if last_break < 0 else len(data) - last_break - 1
        _require(self._line <= MAX_JSON_BYTES, f"{self._name} has a line that is too long")
        buffer[: len(data)] = data
        return len(data)


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ServiceInputError(f"the archive cannot be restored: {message}; nothing was written")


def _require_short_list(file: IO[bytes], size: int) -> None:
    """Refuse a list of members that would exhaust the memory, before it is read."""
    tail = _read_at(file, max(0, size - _END.size - _END_64_PLACE.size))
    _require(len(tail) >= _END.size and tail[-_END.size :].startswith(b"PK\5\6"), "it is not a complete ZIP file")
    list_bytes = _END.unpack(tail[-_END.size :])[5]
    if tail.startswith(b"PK\6\7"):
        end = _read_at(file, _END_64_PLACE.unpack(tail[: _END_64_PLACE.size])[2])[: _END_64.size]
        _require(len(end) == _END_64.size, "it is not a complete ZIP file")
        list_bytes = max(list_bytes if list_bytes != 0xFFFFFFFF else 0, _END_64.unpack(end)[8])
    _require(list_bytes <= size, "its list of members is damaged")
    _require(list_bytes <= MAX_LIST_BYTES, "it has too many members")


def _read_at(file: IO[bytes], place: int) -> bytes:
    try:
        file.seek(place)
        return file.read(_END.size + _END_64_PLACE.size + _END_64.size)
    except (OSError, OverflowError, ValueError) as error:
        raise ServiceInputError(f"the archive cannot be restored: {error}; nothing was written") from error


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    size, sha256 = entry.get("bytes"), entry.get("sha256")
    is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    return is_size and isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None


def _parsed(name: str, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ServiceInputError(f"the archive cannot be restored: {name} is not JSON: {error}") from None


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    try:
        yield
    except ServiceInputError:
        raise
    except (BadZipFile, EOFError, NotImplementedError, OverflowError, ValueError, zlib.error, struct.error) as error:
        raise ServiceInputError(f"the archive cannot be restored: {name} is damaged: {error}") from error


#: What no backup contains, and why.
NEVER_BACKED_UP = {
    "secrets of credentials": "the service never shows them; credentials are in the archive by name and type",
    "executions": "the history of executions cannot be written to an instance",
    "archived workflows": "a copy would take the name of a workflow that is in use",
    "earlier versions of workflows": "only what runs, and the draft, can be written to an instance",
    "state of workflows": "a running workflow changes its static data all the time",
    "folders of workflows": "the service does not show in which folder a workflow is",
    "folders of personal projects": "the service does not show which project belongs to the key's user",
    "ids and dates of rows": "the service gives new ones to rows that are inserted",
    "passwords and keys of users": "the service never shows them; users are in the archive as a list",
    "settings of the instance": "the API does not export license, settings, community packages, source control and MCP",
}


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class TagEntry(_Entry):
    name: str


class VariableEntry(_Entry):
    """A variable; ``project`` is the name of a team project, or None for the whole instance."""

    key: str
    value: str = Field(repr=False)
    project: str | None = None


class MemberEntry(_Entry):
    email: str
    role: str | None = None


class ProjectEntry(_Entry):
    name: str
    members: list[MemberEntry] = Field(default_factory=list)
    folders: list[list[str]] = Field(default_factory=list)


class CredentialEntry(_Entry):
    name: str
    type: str
    project: str | None = None


class UserEntry(_Entry):
    """A user; only for information, since a restore does not invite users."""

    email: str
    first_name: str | None = None
    last_name: str | None = None
    role: str | None = None


class ColumnEntry(_Entry):
    name: str
    type: Literal["string", "number", "boolean", "date"]


assert set(COLUMN_TYPES) == {"string", "number", "boolean", "date"}  # noqa: S101 - one list for people, one for checks


class TableEntry(_Entry):
    """A data table, and the member of the archive that holds its rows."""

    id: Annotated[str, AfterValidator(plain_id)] | None = None
    name: str
    project: str | None = None
    columns: list[ColumnEntry]
    rows: int
    file: str

    @property
    def types(self) -> dict[str, str]:
        return {one.name: one.type for one in self.columns}


class WorkflowEntry(_Entry):
    """A workflow: the version that runs, and the draft if it differs."""

    id: Annotated[str, AfterValidator(plain_id)]
    project: str | None = None
    definition: dict[str, Any]
    draft: dict[str, Any] | None = None


class Contents(_Entry):
    """The contents of a backup, except workflows and rows. A kind that could not be backed up is None."""

    tags: list[TagEntry]
    variables: list[VariableEntry] | None
    projects: list[ProjectEntry] | None
    credentials: list[CredentialEntry] | None
    users: list[UserEntry] | None
    data_tables: list[TableEntry] | None
