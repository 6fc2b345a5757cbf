"""Encode requests: paths, queries, JSON and files. Values that would change the meaning of a request are refused.

Files are read while they are sent, and never loaded into memory.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote
from uuid import uuid4

from pydantic_core import to_jsonable_python
from urllib3.fields import RequestField

from airflow_provider_service.client._constraints import MAX_ID_CHARS, NOT_PLAIN, is_addressable
from airflow_provider_service.client._http.redaction import HiddenBytes, HiddenText
from airflow_provider_service.client._values import one_line, shown
from airflow_provider_service.client.errors import ServiceFileError, ServiceInputError

Query = Mapping[str, Any]

# The caller writes a path with {} for each id; everything else in it is sent unchanged.
_PATH = re.compile(r"(/([A-Za-z0-9._~%-]+|\{\}))+")
_READ_AT_ONCE = 256 * 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LINE_END = b"\r\n"


def fill_path(path: str, ids: Sequence[str | int]) -> str:
    if not isinstance(path, str):
        raise ServiceInputError(f"path must be text such as '/workflows', not {shown(path)}; nothing was sent")
    parts = _parts_of(path)
    if len(parts) != len(ids) + 1:
        raise ServiceInputError(f"{path!r} has {len(parts) - 1} placeholders for ids, not {len(ids)}; nothing was sent")
    return "".join(chain.from_iterable(zip(parts, (*map(_id_segment, ids), ""), strict=True)))


@lru_cache(maxsize=512)
def _parts_of(path: str) -> list[str]:
    segments = path.split("/")
    if not _PATH.fullmatch(path) or {".", ".."} & set(segments):
        raise ServiceInputError(
            f"{path[:MAX_ID_CHARS]!r} is not a path below the API root, such as '/workflows/{{}}'; nothing was sent"
        )
    return path.split("{}")


def segment(text: str) -> str:
    """Percent-encode a segment of a webhook's path."""
    if text.strip() in ("", ".", "..") or len(text) > MAX_ID_CHARS:
        raise ServiceInputError(f"{shown(text)} cannot be a segment of a path; nothing was sent")
    return _quote(text)


def _id_segment(value: str | int) -> str:
    """Encoding alone does not suffice: proxies and servers decode what they pass on, and then see another path."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ServiceInputError(f"an id must be text or a whole number, not {type(value).__name__}; nothing was sent")
    is_short = isinstance(value, str) or abs(value) < 10**MAX_ID_CHARS
    if not is_short or not is_addressable(str(value)):
        raise ServiceInputError(f"{shown(value)} {NOT_PLAIN}; nothing was sent")
    return _quote(str(value))


def encode_query(query: Query | None) -> str:
    pairs = []
    for name, value in (query or {}).items():
        if isinstance(value, Collection) and not isinstance(value, str):
            raise ServiceInputError(f"{one_line(name)} must be a single value, not {shown(value)}; nothing was sent")
        if value is not None:
            pairs.append(f"{_quote(name)}={_quote(text_of(value))}")
    return f"?{'&'.join(pairs)}" if pairs else ""


def text_of(value: Any) -> str:
    try:
        return str(value).lower() if isinstance(value, bool) else str(value)
    except ValueError:  # Python refuses to convert numbers of thousands of digits
        raise ServiceInputError("a query parameter is a number with too many digits; nothing was sent") from None


def _quote(text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise ServiceInputError(f"{text!r} is not valid Unicode text; nothing was sent") from None


def to_json(value: Any) -> str:
    try:
        text = HiddenText(_ENCODER.encode(value))
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = one_line(str(error))
    else:
        return text
    # Raised outside the handler, so that the error's context keeps no frames that hold the value.
    raise ServiceInputError(f"an argument cannot be written as JSON: {reason}; nothing was sent")


def json_body(value: Any) -> HiddenBytes:
    return HiddenBytes(to_json(value).encode())


def plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        # The service would assume its own current time zone.
        raise ValueError(f"{value.isoformat()} has no time zone")
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return list(value)  # such as Airflow's own for the results of mapped tasks
    if isinstance(value, Iterator):
        # A call that is lost is made again, and would then be sent without the items.
        raise ValueError(f"a {type(value).__name__} can be read only once; make a list of it")
    return to_jsonable_python(value)


# One for all calls, because to make one takes longer than to encode a row.
_ENCODER = json.JSONEncoder(default=plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


class FileSource(Protocol):
    """What a file is read from: a ``pathlib.Path``, or a path of an object storage with the same methods."""

    @property
    def name(self) -> str: ...

    def is_file(self) -> bool: ...

    def stat(self) -> Any: ...

    def open(self, mode: str) -> Any: ...


class FilePart(NamedTuple):
    """A file of a body; its size is in bytes."""

    field: str
    source: FileSource
    size: int


def file_parts(files: Mapping[str, str | FileSource]) -> list[FilePart]:
    if not isinstance(files, Mapping):
        raise ServiceInputError(f"files must be a mapping of names to paths, not {shown(files)}; nothing was started")
    return [_part(name, Path(path) if isinstance(path, str) else path) for name, path in files.items()]


def _part(name: str, source: FileSource) -> FilePart:
    if not isinstance(name, str) or not name.strip() or _CONTROL.search(name):
        raise ServiceInputError(f"files: {shown(name)} cannot be the name of a field; nothing was started")
    if not all(hasattr(source, member) for member in ("name", "is_file", "stat", "open")):
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
    """A multipart body. Each iteration reads the files anew, so that a try can be repeated."""

    def __init__(self, fields: Mapping[str, str], files: Sequence[FilePart]) -> None:
        self._boundary = uuid4().hex
        self._files = [(self._head_of_file(part), part) for part in files]
        self._texts = b"".join(
            self._head(RequestField(_CONTROL.sub("_", name), b"")) + text.encode("utf-8", "replace") + _LINE_END
            for name, text in fields.items()
        )
        self._end = f"--{self._boundary}--\r\n".encode()

    @property
    def content_type(self) -> str:
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

    def _head_of_file(self, part: FilePart) -> bytes:
        name = _CONTROL.sub("_", part.source.name) or "file"
        # Without a media type, the service takes a file for a text field.
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return self._head(RequestField(part.field, b"", filename=name), media_type)

    def _head(self, field: RequestField, media_type: str | None = None) -> bytes:
        field.make_multipart(content_type=media_type)
        return f"--{self._boundary}\r\n{field.render_headers()}".encode("utf-8", "replace")


def _content(part: FilePart) -> Iterator[bytes]:
    """The content of a file. If it cannot be read or has changed, the error makes the service discard the call."""
    missing = part.size
    try:
        with part.source.open("rb") as file:
            while missing and (read := file.read(min(missing, _READ_AT_ONCE))):
                missing -= len(read)
                yield read
            is_longer = not missing and bool(file.read(1))
    except Exception as error:  # each object storage has errors of its own
        raise _aborted(part, one_line(f"{type(error).__name__}: {error}")) from error
    if missing or is_longer:
        raise _aborted(part, "its size changed while it was sent")


def _aborted(part: FilePart, reason: str) -> ServiceFileError:
    where = f"files[{part.field!r}], {part.source}"
    return ServiceFileError(f"{where}: {reason}; the call was aborted, nothing was started")
