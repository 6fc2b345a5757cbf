"""Names of workflows and nodes as names of files."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import chain, count
from unicodedata import normalize

from airflow_provider_service.client._ids import plain_id

log = logging.getLogger(__name__)

#: What file systems do not accept in the name of a file.
_NOT_IN_FILES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]')
_MAX_CHARS = 80
#: A name has 255 bytes at most; this leaves room for its ending, and for what is added while the file is written.
_MAX_BYTES = 200
_ENDING = ".json"


def file_name(name: str, max_bytes: int = _MAX_BYTES) -> str:
    """The name of a workflow or a node as a file name, without characters that file systems do not accept."""
    # A leading dot would hide the file, and some file systems drop dots and blanks at the end.
    short = _NOT_IN_FILES.sub("_", name).strip(". ")[:_MAX_CHARS].encode()[:max_bytes]
    return short.decode(errors="ignore").rstrip(". ") or "_"


def file_stem(name: str, object_id: str, taken: set[str]) -> str:
    """The name of an object as a unique file name, without an ending.

    :param taken: the names that are in use already; those of the new file, and of a folder beside it, are added.
    :raises ServiceInputError: the id would become part of the name, and is not plain.
    """
    for suffix in chain([""], _suffixes(object_id)):
        stem = file_name(name, _MAX_BYTES - len(suffix)) + suffix
        # The folder beside another file may be called as this file is, and the other way round.
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
    # Some file systems do not tell upper from lower case, nor the ways to write the same letter.
    return normalize("NFC", name).casefold()
