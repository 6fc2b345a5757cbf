"""Workflow definitions as arguments of operators: templates in paths are rendered, definitions are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_provider_service.operators._rendering import template_folders, verbatim

_ADDRESS = "://"


class DefinitionsMixin:
    """Mixin for operators whose argument ``source`` holds definitions, or paths of folders and files that do.

    The expressions ``{{ ... }}`` in a definition belong to the service, so only paths are rendered.
    """

    #: Template fields in which definitions are not rendered.
    definition_fields: Sequence[str] = ("source",)
    source: Any

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        parent.source = _unrendered(parent.source)
        super()._do_render_template_fields(parent, *args, **kwargs)  # type: ignore[misc]

    def located(self) -> Any:
        """Return the source, with relative paths resolved against the folder of the DAG file."""
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
    """Resolve a relative path against the folder of the DAG file; return any other value unchanged."""
    is_path = isinstance(value, str) and _ADDRESS not in value and not _is_json(value)
    if not is_path or Path(value).is_absolute():
        return value
    folders = template_folders(task)
    return str(next((found for folder in folders if (found := folder / value).exists()), Path(value)))
