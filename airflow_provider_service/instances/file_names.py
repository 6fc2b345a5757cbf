"""Names of workflows and nodes as names of files."""

from __future__ import annotations

import re

#: What file systems do not accept in the name of a file.
_NOT_IN_FILES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_MAX_CHARS = 80


def file_name(name: str) -> str:
    """The name of a workflow or a node as that of a file, without what file systems do not accept."""
    # A leading dot would hide the file, and some file systems drop dots and blanks at the end.
    return _NOT_IN_FILES.sub("_", name).strip(". ")[:_MAX_CHARS].rstrip(". ") or "_"
