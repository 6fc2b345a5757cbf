"""The format of a workflow's file: the version that runs, without volatile data, and with names instead of ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.instances.workflow_references import Named, with_references
from airflow_provider_service.client._definitions import UNSET, running
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.directory import Directory
    from airflow_provider_service.client.models import Workflow

_VOLATILE = ("staticData",)
_LEFT_OUT_IF_EMPTY = ("description", "nodeGroups", "pinData")


def to_export_format(
    workflow: Workflow, directory: Directory, *, pinned_data: bool = False, draft: bool = False
) -> dict[str, Any]:
    """Convert a workflow to the form that it has in a file.

    :param workflow: the workflow, read by its id; a list omits fields.
    :param directory: the names of the instance's objects. An unknown object keeps its id.
    :param pinned_data: whether the pinned data of the nodes is included.
    :param draft: use the draft instead of the version that runs.
    :returns: ``name``, ``active``, ``nodes``, ``connections``, ``settings``, ``tags`` and, unless
        they are empty, ``description``, ``nodeGroups`` and ``pinData``.
    """
    whole = writable(workflow) if draft else running(workflow)
    content = {name: value for name, value in whole.items() if name not in _VOLATILE}
    if not pinned_data:
        content.pop("pinData", None)
    settings = {name: value for name, value in content["settings"].items() if not _is_unset(name, value)}
    tags = sorted(tag.name for tag in workflow.tags or () if tag.name)
    written = with_references(
        {**content, "settings": settings, "active": workflow.active, "tags": tags},
        lambda named: by_name(named, directory),
    )
    return {name: value for name, value in written.items() if value or name not in _LEFT_OUT_IF_EMPTY}


def by_name(named: Named, directory: Directory) -> Named:
    """Return the object by its name only, if it is known."""
    entry = directory.find(named)
    if entry is None:
        return named
    return Named(named.kind, None, entry.name, named.place, named.type)


def to_text(definition: Mapping[str, Any]) -> str:
    """Write a definition as text that differs only where the definition does."""
    return json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _is_unset(name: str, value: Any) -> bool:
    return (name == "errorWorkflow" and not value) or (name in UNSET and UNSET[name] == value)
