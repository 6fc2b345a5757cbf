"""Turn names of workflows and nodes into names of files."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import chain, count
from unicodedata import normalize

from airflow_provider_service.client._constraints import plain_id

log = logging.getLogger(__name__)

#: Characters that file systems do not accept in the name of a file.
_NOT_IN_FILES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]')
_MAX_CHARS = 80
#: A name has at most 255 bytes; this leaves room for the suffix, and for what is appended while the file is written.
_MAX_BYTES = 200
_ENDING = ".json"


def file_name(name: str, max_bytes: int = _MAX_BYTES) -> str:
    """Turn the name of a workflow or a node into one that file systems accept."""
    # A leading dot would hide the file, and some file systems drop dots and blanks at the end.
    short = _NOT_IN_FILES.sub("_", name).strip(". ")[:_MAX_CHARS].encode()[:max_bytes]
    return short.decode(errors="ignore").rstrip(". ") or "_"


def file_stem(name: str, object_id: str, taken: set[str]) -> str:
    """Turn the name of an object into a unique file name, without a suffix.

    :param taken: the names that are in use already; those of the new file, and of a folder beside it, are added.
    :raises ServiceInputError: the name needs the id to be unique, and the id is not plain.
    """
    for suffix in chain([""], _suffixes(object_id)):
        stem = file_name(name, _MAX_BYTES - len(suffix)) + suffix
        # The folder beside another file may have the name of this file, and vice versa.
        claimed = {_as_compared(stem), _as_compared(stem + _ENDING)}
        if claimed.isdisjoint(taken):
            break
        log.warning("More than one object is named %r; the file of %s has its id in its name", name, object_id)
    taken |= claimed
    return stem


def _suffixes(object_id: str) -> Iterator[str]:
    yield f" ({plain_id(object_id)})"
    yield from (f" ({object_id}) {number}" for number in count(2))


def _as_compared(name: str) -> str:
    # Some file systems distinguish neither upper and lower case, nor the Unicode forms of a letter.
    return normalize("NFC", name).casefold()
