"""Folders in object storage or on a disk: which files they hold, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from airflow_provider_service.arguments import refuse
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.object_storage import LOCAL_PROTOCOLS, storage_path


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
        if self._place.protocol in LOCAL_PROTOCOLS:
            self._attempt(lambda: self._place.mkdir(parents=True, exist_ok=True))

    def files(self, ending: str) -> list[str]:
        """The paths of the files with an ending, below the folder and sorted; those in hidden folders do not count.

        :raises ServiceInputError: there is no such file or folder, or it cannot be read.
        """
        if not self._attempt(self._place.exists):
            raise ServiceInputError(f"{self._name}: there is no file or folder {self.path!r}")
        found = self._attempt(lambda: self._place.fs.find(self._place.path))
        below = (PurePosixPath(one).relative_to(self._root) for one in found)
        return sorted(str(one) for one in below if one.suffix == ending and not _is_hidden(one))

    def read(self, path: str) -> str:
        """The text of a file.

        :param path: path from the folder.
        :raises ServiceInputError: there is no such file, or it is not UTF-8 text.
        """
        content: bytes = self._attempt(lambda: self._place.fs.cat_file(str(self._root / path)))
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ServiceInputError(f"{self._name}: the file {path!r} is not UTF-8 text") from None

    @property
    def _root(self) -> PurePosixPath:
        place = PurePosixPath(self._place.fs._strip_protocol(self._place.path))
        return place.parent if self._attempt(lambda: self._place.fs.isfile(self._place.path)) else place

    def _attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (ImportError, OSError, TypeError, ValueError) as error:
            raise ServiceInputError(f"{self._name} {self.path!r} cannot be used: {error}") from error


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in path.parts)
