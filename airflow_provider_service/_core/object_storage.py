"""Files and folders in object storage or on a disk: the one place where a path or an address becomes one.

Files are written so that they are either complete or absent, and read as streams. One whose name ends in ``.gz`` is
compressed with gzip.
"""

from __future__ import annotations

import errno
import gzip
import logging
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any
from uuid import uuid4

from airflow_provider_service._core.arguments import refuse, require
from airflow_provider_service.client.errors import ServiceError, ServiceInputError

log = logging.getLogger(__name__)

#: A path or an address such as ``s3://my_conn@bucket/key.csv``, as text or as Airflow's ``ObjectStoragePath``.
StoredPath = str | os.PathLike[str]

#: Bytes of a file in object storage that are sent or read at a time; the default of some storages is 50 MiB.
BLOCK_BYTES = 8 * 1024 * 1024
#: Protocols of paths on a disk.
LOCAL_PROTOCOLS = ("", "file", "local")
#: Bytes of a file's name that its temporary name begins with: a file system limits the bytes of a name.
MAX_PARTIAL_BYTES = 200

_GZIP_ENDING = ".gz"
# No space is left, a quota is exceeded, or the file is too large: errors that only a write can have.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f\\]")


def storage_path(path: Any, *, conn_id: str | None = None) -> Any:
    """Airflow's own object for a path; ``conn_id`` counts unless the address names a connection, so everywhere here."""
    # Imported late, since it loads the libraries of file systems.
    from airflow.providers.common.compat.sdk import ObjectStoragePath

    if isinstance(path, str) and "://" not in path:
        path = str(Path(path).absolute())  # what "." is differs between versions: on Airflow 2, the root
    # On Airflow 2, None would replace the connection that the address names.
    return ObjectStoragePath(path) if conn_id is None else ObjectStoragePath(path, conn_id=conn_id)


def require_place(name: str, path: object, *, conn_id: str | None = None) -> None:
    """Refuse a file that could never be written: of an unknown kind, or in a directory that does not exist."""
    local, _ = _place(name, path, conn_id)
    if local is None:
        return
    shown = f"{name} {str(path)!r}"
    try:
        has_directory, is_directory = local.parent.is_dir(), local.is_dir()
        # Its links have been followed, so one that is left leads to itself.
        is_other = local.is_symlink() or (local.exists() and not local.is_file())
    except (OSError, ValueError) as error:
        raise ServiceInputError(f"{shown} cannot be used: {error}") from error
    require(has_directory, f"the directory of {shown} does not exist")
    require(not is_directory, f"{shown} is a directory")
    require(not is_other, f"{shown} exists and is not a file")


def require_path(name: str, path: object) -> None:
    if not hasattr(path, "protocol") and not (isinstance(path, (str, PurePath)) and str(path).strip()):
        refuse(name, "a path or an address of object storage", path)


def is_same_file(path: StoredPath, other: StoredPath, *, conn_id: str | None = None) -> bool:
    """Whether two paths or addresses lead to the same file; links are followed."""
    (local, remote), (other_local, other_remote) = _place("path", path, conn_id), _place("path", other, conn_id)
    return (local, str(remote)) == (other_local, str(other_remote))


def exists(name: str, path: StoredPath) -> bool:
    local, remote = _place(name, path, None)
    return bool((local or remote).exists())


def write_whole(path: StoredPath, content: bytes) -> str:
    with whole_file("path", path) as file:
        file.write(content)
    return address_of(path)


def address_of(path: StoredPath, *, conn_id: str | None = None) -> str:
    """The path or address of a file as text, with the connection of its object storage."""
    _, remote = _place("path", path, conn_id)
    return str(path) if remote is None else str(remote)


@contextmanager
def whole_file(
    name: str, path: StoredPath, *, conn_id: str | None = None, check: Callable[[IO[bytes]], object] | None = None
) -> Iterator[IO[bytes]]:
    """Open a file to write, which gets its name when the block ends without an error. Safe to repeat.

    After an error, what was there before is unchanged. On a disk, a new file takes over the permissions of the file
    that it replaces, and a link stays a link: the file that it points to is replaced. Until then, the content has a
    temporary name, which a process that is killed may leave behind; in object storage, the storage copies it at the
    end.

    :param name: the argument with the path, for messages.
    :param check: reads the bytes that were written before they get their name, and raises an error if they may not.
    """
    local, remote = _place(name, path, conn_id)
    with _whole_on_disk(local, check) if local else _whole_in_storage(remote, check) as raw:
        if not str(path).endswith(_GZIP_ENDING):
            yield raw
            return
        # Without a name and a time, so that equal contents are equal files.
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
            yield file  # type: ignore[misc]


@contextmanager
def reading(name: str, path: StoredPath, *, conn_id: str | None = None) -> Iterator[IO[bytes]]:
    local, remote = _place(name, path, conn_id)
    with local.open("rb") if local else remote.fs.open(remote.path, "rb", block_size=BLOCK_BYTES) as raw:
        if not str(path).endswith(_GZIP_ENDING):
            yield raw
            return
        try:
            # Python reads a file without a single byte as if it were a gzip file without content.
            if not raw.read(1):
                raise EOFError("it has no content, not even a header")
            raw.seek(0)
            with gzip.GzipFile(mode="rb", fileobj=raw) as file:
                yield file  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ServiceInputError(f"{name} {str(path)!r} is not a complete gzip file: {error}") from error


def _place(name: str, path: Any, conn_id: str | None) -> tuple[Path | None, Any]:
    """Where a file is: on a disk, as a path without links; or None, and Airflow's object of it in object storage."""
    require_path(name, path)
    is_object = hasattr(path, "protocol")
    try:
        if not is_object and "://" not in str(path):
            return Path(path).resolve(), None
        target = path if is_object else storage_path(path, conn_id=conn_id)
        if target.protocol in LOCAL_PROTOCOLS:
            return Path(target.path).resolve(), None
        _ = target.fs  # Airflow 2 refuses an unknown kind only here
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ServiceInputError(f"{name} {str(path)!r} cannot be used: {error}") from error
    return None, target


@contextmanager
def _whole_on_disk(target: Path, check: Callable[[IO[bytes]], object] | None) -> Iterator[IO[bytes]]:
    partial = target.with_name(_partial_name(target.name))
    try:
        if target.exists():
            # Only those who may open the file that it replaces may open it, even while it is empty.
            partial.touch(0o600, exist_ok=False)
            partial.chmod(stat.S_IMODE(target.stat().st_mode))
        else:
            partial.touch(exist_ok=False)
        with partial.open("wb") as file:
            yield file
        if check is not None:
            with partial.open("rb") as written:
                check(written)
        partial.replace(target)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        size = partial.stat().st_size
        raise ServiceError(
            f"{target} could not be written: {error.strerror}, after {size:,} bytes; what was there before is unchanged"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _whole_in_storage(target: Any, check: Callable[[IO[bytes]], object] | None) -> Iterator[IO[bytes]]:
    # With a name of its own, because a file of a storage also gets its name when it is closed after an error.
    partial = str((target.parent / _partial_name(target.name)).path)
    file = target.fs.open(partial, "wb", block_size=BLOCK_BYTES)
    try:
        try:
            yield file
        finally:
            file.close()
        if check is not None:
            with target.fs.open(partial, "rb", block_size=BLOCK_BYTES) as written:
                check(written)
        target.fs.cp_file(partial, target.path)
    except BaseException:
        with suppress(Exception):
            target.fs.rm_file(partial)
        raise
    try:
        target.fs.rm_file(partial)
    except Exception as error:  # noqa: BLE001 - each storage has its own; the file itself is complete
        log.warning("%s is complete, but its temporary copy %s could not be deleted: %s", target, partial, error)


def _partial_name(name: str) -> str:
    short = name.encode(errors="replace")[:MAX_PARTIAL_BYTES].decode(errors="ignore")
    return f".{short}.{uuid4().hex}.part"


def stays_below(path: str) -> bool:
    """Whether a path, taken from any folder, leads to a file below that folder."""
    return not _NOT_IN_PATHS.search(path) and {"", ".", ".."}.isdisjoint(path.split("/"))


class StoredFolder:
    """A folder, or a single file, which is then the only one in its folder."""

    def __init__(self, name: str, path: object) -> None:
        if not (isinstance(path, str) or hasattr(path, "fs")) or not str(path).strip():
            refuse(name, "a path or an address of object storage", path)
        self._name, self.path = name, str(path)
        self._place: Any = self._attempt(lambda: storage_path(path))

    def make(self) -> None:
        if self._is_local:
            self._attempt(lambda: self._place.mkdir(parents=True, exist_ok=True))

    def exists(self) -> bool:
        """Whether there is such a file or folder; in object storage, a folder without files does not exist."""
        return bool(self._attempt(self._place.exists))

    def holds(self, ending: str) -> bool:
        return self.exists() and bool(self.files(ending))

    def files(self, ending: str, *, depth: int | None = None) -> list[str]:
        """The paths of the files with an ending, below the folder and sorted; those in hidden folders do not count."""
        if not self.exists():
            raise ServiceInputError(f"{self._name}: there is no file or folder {self.path!r}")
        if depth is None and self._is_local:
            self._attempt(self._require_readable_folders)
        addresses = self._attempt(lambda: self._place.fs.find(self._place.path, maxdepth=depth))
        root, paths = self._root, []
        for address in addresses:
            path = PurePosixPath(address).relative_to(root)
            if path.suffix == ending and not any(part.startswith(".") for part in path.parts):
                paths.append(str(path))
        return sorted(paths)

    def _require_readable_folders(self) -> None:
        """Refuse folders on a disk that ``find`` would leave out: what they hold would count as removed."""

        def refuse_unreadable(error: OSError) -> None:
            raise error

        root = Path(self._folder)
        for folder, names, _ in os.walk(root, onerror=refuse_unreadable) if root.is_dir() else ():
            names[:] = [name for name in names if not name.startswith(".")]
            for name in names:
                path = Path(folder, name)
                if path.is_symlink():
                    linked = str(path.relative_to(root))
                    raise OSError(f"{linked!r} is a symbolic link to a folder; replace it by the folder")

    def read(self, path: str) -> str:
        root = self._root
        self._require_below(root, path)
        content: bytes = self._attempt(lambda: self._place.fs.cat_file(str(root / path)))
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ServiceInputError(f"{self._name}: the file {path!r} is not UTF-8 text") from None

    @contextmanager
    def opened(self, path: str) -> Iterator[IO[bytes]]:
        self._require_below(self._folder, path)
        with reading(self._name, self._address(path)) as file:
            yield file

    def is_link(self, path: str) -> bool:
        return self._is_local and Path(self._folder / path).is_symlink()

    def is_same(self, path: str, other: str) -> bool:
        """Whether two paths lead to one file, as on a disk that does not distinguish upper from lower case."""
        if path == other or not self._is_local:
            return path == other
        return bool(self._attempt(lambda: Path(self._folder / path).samefile(self._folder / other)))

    def delete(self, path: str) -> None:
        self._require_below(self._folder, path)
        self._place.fs.rm_file(str(self._folder / path))

    def write(self, path: str, content: bytes) -> str:
        root = self._folder
        self._require_below(root, path)
        if self._is_local:
            self._attempt(lambda: Path(root / path).parent.mkdir(parents=True, exist_ok=True))
        return write_whole(self._address(path), content)

    def _address(self, path: str) -> str:
        return f"{self.path.rstrip('/')}/{path}"

    def _require_below(self, root: PurePosixPath, path: str) -> None:
        """Every file of a folder passes here before it is opened, whoever has chosen its name."""
        is_below = stays_below(path)
        if is_below and self._is_local:
            is_below = self._attempt(lambda: Path(root / path).resolve().is_relative_to(Path(root).resolve()))
        if not is_below:
            raise ServiceInputError(f"{self._name}: the file {path!r} is not below the folder {self.path!r}")

    @property
    def _is_local(self) -> bool:
        return self._place.protocol in LOCAL_PROTOCOLS

    @property
    def _folder(self) -> PurePosixPath:
        return PurePosixPath(self._place.fs._strip_protocol(self._place.path))

    @property
    def _root(self) -> PurePosixPath:
        is_file = self._attempt(lambda: self._place.fs.isfile(self._place.path))
        return self._folder.parent if is_file else self._folder

    def _attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise ServiceInputError(f"{self._name} {self.path!r} cannot be used: {error}") from error
