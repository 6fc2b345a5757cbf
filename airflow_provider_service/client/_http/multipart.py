"""Bodies with files, which are read while they are sent and never loaded into memory."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from urllib3.fields import RequestField

from airflow_provider_service.client._texts import one_line, shown
from airflow_provider_service.client.errors import ServiceFileError, ServiceInputError

_READ_AT_ONCE = 256 * 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LINE_END = b"\r\n"


class FileSource(Protocol):
    """What a file is read from: a ``pathlib.Path``, or a path of an object storage with the same methods."""

    @property
    def name(self) -> str: ...

    def is_file(self) -> bool: ...

    def stat(self) -> Any: ...

    def open(self, mode: str) -> Any: ...


class FilePart(NamedTuple):
    """A file of a body.

    :param field: name of the field.
    :param source: what it is read from.
    :param size: its size in bytes.
    """

    field: str
    source: FileSource
    size: int


def file_parts(files: Mapping[str, str | FileSource]) -> list[FilePart]:
    """Check files before they are sent.

    :param files: paths by the name of their field.
    :raises ServiceInputError: a name or path cannot be used, or there is no such file.
    """
    if not isinstance(files, Mapping):
        raise ServiceInputError(f"files must be a mapping of names to paths, not {shown(files)}; nothing was started")
    return [_part(name, Path(path) if isinstance(path, str) else path) for name, path in files.items()]


def _part(name: str, source: FileSource) -> FilePart:
    if not isinstance(name, str) or not name.strip() or _CONTROL.search(name):
        raise ServiceInputError(f"files: {shown(name)} cannot be the name of a field; nothing was started")
    if not all(hasattr(source, one) for one in ("name", "is_file", "stat", "open")):
        raise ServiceInputError(f"files[{name!r}] must be a path, not {shown(source)}; nothing was started")
    try:
        if not source.is_file():
            raise FileNotFoundError("there is no such file")
        size = source.stat().st_size
    except (FileNotFoundError, IsADirectoryError, PermissionError, ValueError) as error:
        reason = one_line(str(error))
        raise ServiceInputError(f"files[{name!r}], {source}: {reason}; nothing was started") from error
    if not isinstance(size, int):
        raise ServiceInputError(f"files[{name!r}], {source}: its size is not known; nothing was started")
    return FilePart(name, source, size)


class MultipartBody:
    """A multipart body. Each iteration reads the files anew, so that a try can be repeated.

    :param fields: text fields by name.
    :param files: the files.
    """

    def __init__(self, fields: Mapping[str, str], files: Sequence[FilePart]) -> None:
        self._boundary = uuid4().hex
        self._files = [(self._head(_file_field(part)), part) for part in files]
        self._texts = b"".join(
            self._head(_text_field(name)) + text.encode("utf-8", "replace") + _LINE_END for name, text in fields.items()
        )
        self._end = f"--{self._boundary}--\r\n".encode()

    @property
    def content_type(self) -> str:
        """The media type, with the boundary."""
        return f"multipart/form-data; boundary={self._boundary}"

    def __len__(self) -> int:
        files = sum(len(head) + part.size + len(_LINE_END) for head, part in self._files)
        return len(self._texts) + files + len(self._end)

    def __iter__(self) -> Iterator[bytes]:
        if self._texts:
            yield self._texts
        for head, part in self._files:
            yield head
            yield from _content(part)
            yield _LINE_END
        yield self._end

    def _head(self, field: RequestField) -> bytes:
        return f"--{self._boundary}\r\n{field.render_headers()}".encode("utf-8", "replace")


def _file_field(part: FilePart) -> RequestField:
    name = _CONTROL.sub("_", part.source.name) or "file"
    field = RequestField(part.field, b"", filename=name)
    # Without a media type, the service takes a file for a text field.
    field.make_multipart(content_type=mimetypes.guess_type(name)[0] or "application/octet-stream")
    return field


def _text_field(name: str) -> RequestField:
    field = RequestField(_CONTROL.sub("_", name), b"")
    field.make_multipart()
    return field


def _content(part: FilePart) -> Iterator[bytes]:
    """The content of a file.

    :raises ServiceFileError: it cannot be read, or its size has changed. The service discards such a call.
    """
    left = part.size
    try:
        with part.source.open("rb") as file:
            while left and (read := file.read(min(left, _READ_AT_ONCE))):
                left -= len(read)
                yield read
            is_longer = not left and bool(file.read(1))
    except Exception as error:  # each object storage has errors of its own
        raise _aborted(part, one_line(f"{type(error).__name__}: {error}")) from error
    if left or is_longer:
        raise _aborted(part, "its size changed while it was sent")


def _aborted(part: FilePart, reason: str) -> ServiceFileError:
    where = f"files[{part.field!r}], {part.source}"
    return ServiceFileError(f"{where}: {reason}; the call was aborted, nothing was started")
