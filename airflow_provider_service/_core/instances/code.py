"""Keep the code of nodes in separate files, so that editors and reviews show it as code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, count
from typing import Any

from airflow_provider_service._core.instances.file_names import file_name
from airflow_provider_service._core.stored_folders import stays_below
from airflow_provider_service.client.errors import ServiceInputError

#: Parameters of nodes that hold code, with the suffix of the file for it.
_CODE = {"jsCode": ".js", "pythonCode": ".py", "functionCode": ".js"}
_FILE = "file"


def code_apart(definition: Mapping[str, Any], stem: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Move the code of a definition's nodes to files.

    :param stem: name of the definition's file without its suffix, and of the folder for the files of code.
    :returns: the definition with ``{"file": ...}`` in place of code, and the code by the path of its file.
    """
    files: dict[str, str] = {}

    def apart(node: Mapping[str, Any], name: str, code: Any) -> Any:
        # Expressions and single lines are easiest to read in their node.
        if not isinstance(code, str) or "\n" not in code or code.startswith("=") or not _is_unicode(code):
            return code
        path = _free_path(stem, node, name, files)
        files[path] = code
        return {_FILE: path}

    return _with_code(definition, apart), files


def code_inside(definition: Mapping[str, Any], read: Callable[[str], str]) -> dict[str, Any]:
    """Put code from files back into a definition's nodes.

    :param read: returns the content of a file; its path is relative to the folder of the definition.
    :raises ServiceInputError: a path leads out of that folder.
    """

    def inside(_node: Mapping[str, Any], _name: str, code: Any) -> Any:
        if not isinstance(code, Mapping) or not isinstance(code.get(_FILE), str):
            return code
        path = code[_FILE]
        if not stays_below(path):
            raise ServiceInputError(f"the file of code {path!r} must be below the folder of the definition")
        return read(path)

    return _with_code(definition, inside)


def _is_unicode(code: str) -> bool:
    """Whether a file can hold the code; JSON can also hold half of a surrogate pair."""
    try:
        code.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_code(definition: Mapping[str, Any], change: Callable[[Mapping[str, Any], str, Any], Any]) -> dict[str, Any]:
    return {**definition, "nodes": [_node(node, change) for node in definition.get("nodes") or ()]}


def _node(node: Any, change: Callable[[Mapping[str, Any], str, Any], Any]) -> Any:
    parameters = node.get("parameters") if isinstance(node, Mapping) else None
    if not isinstance(parameters, Mapping):
        return node
    changed = {name: change(node, name, value) if name in _CODE else value for name, value in parameters.items()}
    return {**node, "parameters": changed}


def _free_path(stem: str, node: Mapping[str, Any], name: str, files: Mapping[str, str]) -> str:
    taken = {path.casefold() for path in files}
    base = f"{stem}/{file_name(str(node.get('name')))}"
    candidates = (f"{base}{number}{_CODE[name]}" for number in chain([""], map(" {}".format, count(2))))
    return next(path for path in candidates if path.casefold() not in taken)
