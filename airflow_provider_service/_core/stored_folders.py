"""Folders in object storage or on a disk: which files they hold, and what is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from airflow_provider_service._airflow.arguments import refuse
from airflow_provider_service._core.object_storage import LOCAL_PROTOCOLS, reading, storage_path, write_whole
from airflow_provider_service.client.errors import ServiceInputError

_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f\\]")


def stays_below(path: str) -> bool:
    """Whether a path, taken from any folder, leads to a file below that folder."""
    return not _NOT_IN_PATHS.search(path) and {"", ".", ".."}.isdisjoint(path.split("/"))


class StoredFolder:
    """A folder, or a single file, which is then the only one in its folder.

    :param name: the argument with the path, for messages.
    :param path: a path, or an address such as ``s3://my_conn@bucket/workflows``, in which an Airflow connection may be
        named.
    """

    def __init__(self, name: str, path: object) -> None:
        if not (isinstance(path, str) or hasattr(path, "fs")) or not str(path).strip():
            refuse(name, "a path or an address of object storage", path)
        self._name, self.path = name, str(path)
        self._place: Any = self._attempt(lambda: storage_path(path))

    def make(self) -> None:
        """Make the folder if it does not exist; object storage needs none."""
        if self._is_local:
            self._attempt(lambda: self._place.mkdir(parents=True, exist_ok=True))

    def exists(self) -> bool:
        """Whether there is such a file or folder; in object storage, a folder without files does not exist."""
        return bool(self._attempt(self._place.exists))

    def holds(self, ending: str) -> bool:
        """Whether the folder exists and has files with an ending."""
        return self.exists() and bool(self.files(ending))

    def files(self, ending: str, *, depth: int | None = None) -> list[str]:
        """The paths of the files with an ending, below the folder and sorted; those in hidden folders do not count.

        :param depth: how deep they may lie: 1 for those in the folder itself; None for all.
        :raises ServiceInputError: there is no such file or folder, or a folder cannot be read or is a symbolic link.
        """
        if not self.exists():
            raise ServiceInputError(f"{self._name}: there is no file or folder {self.path!r}")
        if depth is None and self._is_local:
            self._attempt(self._require_readable_folders)
        found = self._attempt(lambda: self._place.fs.find(self._place.path, maxdepth=depth))
        below = (PurePosixPath(one).relative_to(self._root) for one in found)
        return sorted(str(one) for one in below if one.suffix == ending and not _is_hidden(one))

    def _require_readable_folders(self) -> None:
        """Refuse folders on a disk that ``find`` would leave out: what they hold would count as removed."""

        def refuse_unreadable(error: OSError) -> None:
            raise error

        root = Path(self._folder)
        for folder, names, _ in os.walk(root, onerror=refuse_unreadable) if root.is_dir() else ():
            names[:] = [one for one in names if not one.startswith(".")]
            for path in (Path(folder, one) for one in names):
                if path.is_symlink():
                    linked = str(path.relative_to(root))
                    raise OSError(f"{linked!r} is a symbolic link to a folder; replace it by the folder")

    def read(self, path: str) -> str:
        """The text of a file.

        :param path: path from the folder.
        :raises ServiceInputError: there is no such file below the folder, or it is not UTF-8 text.
        """
        root = self._root
        self._require_below(root, path)
        content: bytes = self._attempt(lambda: self._place.fs.cat_file(str(root / path)))
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ServiceInputError(f"{self._name}: the file {path!r} is not UTF-8 text") from None

    @contextmanager
    def opened(self, path: str) -> Iterator[IO[bytes]]:
        """Open a file to read as a stream.

        :param path: path from the folder.
        :raises ServiceInputError: there is no such file below the folder.
        """
        self._require_below(self._folder, path)
        with reading(self._name, self._address(path)) as file:
            yield file

    def is_link(self, path: str) -> bool:
        """Whether a path on a disk is a symbolic link."""
        return self._is_local and Path(self._folder / path).is_symlink()

    def is_same(self, path: str, other: str) -> bool:
        """Whether two paths lead to one file, as on a disk that does not distinguish upper from lower case."""
        if path == other or not self._is_local:
            return path == other
        return bool(self._attempt(lambda: Path(self._folder / path).samefile(self._folder / other)))

    def delete(self, path: str) -> None:
        """Delete a file.

        :param path: path from the folder.
        :raises ServiceInputError: it is not below the folder.
        :raises FileNotFoundError: there is none.
        :raises OSError: it cannot be deleted.
        """
        self._require_below(self._folder, path)
        self._place.fs.rm_file(str(self._folder / path))

    def write(self, path: str, content: bytes) -> str:
        """Write a file, and return its address. Safe to repeat: it replaces what is there.

        :param path: path from the folder; folders in it are made if they do not exist.
        :raises ServiceInputError: the path leads out of the folder, on a disk also by a symbolic link.
        """
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


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in path.parts)
