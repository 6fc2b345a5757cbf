"""Definitions of workflows as arguments of operators: paths in them are rendered, definitions are left as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_provider_service.operators._rendering import template_folders, verbatim

_ADDRESS = "://"


class DefinitionsMixin:
    """For operators whose argument ``source`` holds definitions, or the paths of folders and files with them.

    The expressions ``{{ ... }}`` in a definition belong to the service, so only paths are rendered.
    """

    #: Template fields in which definitions are not rendered.
    definition_fields: Sequence[str] = ("source",)
    source: Any

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        parent.source = _unrendered(parent.source)
        super()._do_render_template_fields(parent, *args, **kwargs)  # type: ignore[misc]

    def located(self) -> Any:
        """The source, in which relative paths start at the folder of the DAG file."""
        is_many = isinstance(self.source, (list, tuple))
        return [from_dag_folder(one, self) for one in self.source] if is_many else from_dag_folder(self.source, self)


def _unrendered(value: Any) -> Any:
    if isinstance(value, Mapping) or _is_json(value):
        return verbatim(value)
    return [_unrendered(one) for one in value] if isinstance(value, (list, tuple)) else value


def _is_json(value: Any) -> bool:
    return (
        isinstance(value, str)
        and value.lstrip()[:1] in ("{", "[")
        and not value.lstrip().startswith(("{{", "{%", "{#"))
    )


def from_dag_folder(value: Any, task: Any) -> Any:
    """A path, or what may be one: a relative path starts at the folder of the DAG file."""
    is_path = isinstance(value, str) and _ADDRESS not in value and not _is_json(value)
    if not is_path or Path(value).is_absolute():
        return value
    folders = template_folders(task)
    return str(next((found for folder in folders if (found := folder / value).exists()), Path(value)))
