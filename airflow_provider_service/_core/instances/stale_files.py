"""Find the files of an export whose workflows were renamed, or are not exported any more."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Set
from typing import Any

from airflow_provider_service._airflow.arguments import require_source
from airflow_provider_service._core.instances.code import code_inside
from airflow_provider_service._core.stored_folders import StoredFolder
from airflow_provider_service.client.errors import ServiceInputError

log = logging.getLogger(__name__)


def remove_stale_files(
    stored: StoredFolder, written: Mapping[str, str], kept: Set[str], *, allow_empty: bool
) -> list[str]:
    """Remove the files of workflows that this export has not written, with their files of code.

    A file without the id of a workflow has never been exported, so it stays. Safe to repeat.

    :param written: the paths of the workflows' files, by their ids.
    :param kept: the paths of the files of code that the export has written.
    :param allow_empty: whether an export of no workflow removes files as well.
    :returns: the paths of the removed files.
    :raises ServiceInputError: nothing was exported, and there are files to remove.
    """
    removed, others = [], _others(stored, written)
    require_source(
        written or not others,
        "the service returned no workflow to export",
        f"remove_stale=True would delete the files of all {len(others)} workflows in {stored.path}",
        allow_empty=allow_empty,
    )
    for path, definition in others.items():
        for one in (*sorted(_code_files(path, definition) - kept), path):
            if _is_removed(stored, one):
                removed.append(one)
        log.info("Removed %r: workflow %s was renamed, or is not exported any more", path, definition["id"])
    return removed


def warn_of_former_names(stored: StoredFolder, written: Mapping[str, str]) -> None:
    """Warn of files that hold an exported workflow under a former name: a folder with both cannot be deployed."""
    for path, definition in _others(stored, written).items():
        if definition["id"] in written:
            log.warning(
                "%r holds the same workflow as %r, under another name. Remove one of them, because a folder with both "
                "cannot be deployed; remove_stale=True does it",
                path,
                written[definition["id"]],
            )


def _others(stored: StoredFolder, written: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The exported definitions in the folder itself that this export has not written, by their paths."""
    # Some file systems do not distinguish upper from lower case, and list a file under its first name.
    names = {path.casefold(): path for path in written.values()}
    found = {}
    for path in stored.files(".json", depth=1) if stored.exists() else ():
        alike = names.get(path.casefold())
        is_written = alike is not None and stored.is_same(path, alike)
        if not is_written and (definition := _exported(stored, path)) is not None:
            found[path] = definition
    return found


def _exported(stored: StoredFolder, path: str) -> dict[str, Any] | None:
    try:
        definition = json.loads(stored.read(path))
    except (ServiceInputError, ValueError, RecursionError):
        return None
    is_workflow = isinstance(definition, dict) and isinstance(definition.get("nodes"), list)
    return definition if is_workflow and isinstance(definition.get("id"), str) else None


def _code_files(path: str, definition: Mapping[str, Any]) -> set[str]:
    """The files of a definition's code, all of which an export writes to the folder beside the definition."""
    found: list[str] = []

    def note(one: str) -> str:
        found.append(one)
        return ""

    try:
        code_inside(definition, note)
    except ServiceInputError:  # this file was not exported
        return set()
    return {one for one in found if one.startswith(f"{path.removesuffix('.json')}/")}


def _is_removed(stored: StoredFolder, path: str) -> bool:
    try:
        stored.delete(path)
    except FileNotFoundError:
        return False
    return True
