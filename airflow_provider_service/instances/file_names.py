"""Names of workflows and nodes as names of files."""

from __future__ import annotations

import logging
import re

log = logging.getLogger(__name__)

#: What file systems do not accept in the name of a file.
_NOT_IN_FILES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_MAX_CHARS = 80


def file_name(name: str) -> str:
    """The name of a workflow or a node as that of a file, without what file systems do not accept."""
    # A leading dot would hide the file, and some file systems drop dots and blanks at the end.
    return _NOT_IN_FILES.sub("_", name).strip(". ")[:_MAX_CHARS].rstrip(". ") or "_"


def file_stem(name: str, object_id: str, taken: set[str]) -> str:
    """The name of an object as that of a file, unlike those of all others.

    :param taken: the names that are in use already, in lower case; the new one is added.
    """
    stem = file_name(name)
    # Some file systems do not tell upper from lower case.
    if stem.casefold() in taken:
        log.warning("More than one object is named %r; the file of %s has its id in its name", name, object_id)
        stem = f"{stem} ({object_id})"
    taken.add(stem.casefold())
    return stem
