"""Files that the call of a webhook carries, on the worker or in object storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.object_storage import storage_path
from airflow_provider_service.client._texts import one_line
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service.client._http.multipart import FileSource


def stored_files(files: Mapping[str, Any] | None) -> Mapping[str, FileSource] | None:
    """Resolve paths as Airflow does: ``/path``, ``s3://bucket/key``, or ``s3://conn_id@bucket/key``.

    :raises ServiceInputError: a path names an object storage that is not known or not installed.
    """
    if not isinstance(files, Mapping):
        return files
    return {name: _path(name, value) if isinstance(value, str) else value for name, value in files.items()}


def _path(name: str, path: str) -> FileSource:
    try:
        found: FileSource = storage_path(path)
        found.is_file()  # connects to the storage
    except (ImportError, ValueError) as error:
        raise ServiceInputError(f"files[{name!r}], {path!r}: {one_line(str(error))}; nothing was started") from error
    return found
