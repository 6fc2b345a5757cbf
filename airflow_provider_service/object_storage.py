"""Files in object storage or on a disk, which are either complete or absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_service.arguments import refuse, require
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCAL = ("", "file", "local")


def write_whole(path: str, content: bytes) -> str:
    """Write a file, and return its address. Safe to repeat: it replaces what is there.

    The file gets its name once it is complete; after a failure, what was there before is unchanged.

    :param path: a path, or an address such as ``s3://my_conn@bucket/key.json``, in which an Airflow connection may be
        named. The directory must exist.
    """
    target = _object_storage_path()(path)
    partial = target.parent / f".{target.name}.{uuid4().hex}.part"
    try:
        partial.write_bytes(content)
        target.fs.mv(partial.path, target.path)
    except BaseException:
        if partial.exists():
            partial.unlink()
        raise
    return str(target)


def require_place(name: str, path: object) -> None:
    """Refuse a file that could never be written: of an unknown kind, or in a directory that does not exist.

    :param name: the argument with the path.
    :raises ServiceInputError: it could not.
    """
    if not isinstance(path, str) or not path.strip():
        refuse(name, "a path or an address of object storage", path)
    try:
        target = _object_storage_path()(path)
        is_local = target.protocol in _LOCAL
        _ = is_local or target.fs  # Airflow 2 refuses an unknown kind only here
        has_directory, is_directory = not is_local or target.parent.is_dir(), is_local and target.is_dir()
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise ServiceInputError(f"{name} {path!r} cannot be used: {error}") from error
    require(has_directory, f"the directory of {name} {path!r} does not exist")
    require(not is_directory, f"{name} {path!r} is a directory")


def _object_storage_path() -> Callable[[str], Any]:
    # Imported late, since it loads the libraries of file systems.
    from airflow.providers.common.compat.sdk import ObjectStoragePath

    return ObjectStoragePath
