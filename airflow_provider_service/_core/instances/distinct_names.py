"""Names of workflows of which several have the same, made distinct by their ids."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_service._airflow.arguments import repeated
from airflow_provider_service.client._ids import plain_id

#: Characters of the name of a workflow at most.
_MAX_CHARS = 128


def name_with_id(name: str, workflow_id: str) -> str:
    """The name of a workflow with its id in it.

    :raises ServiceInputError: the id is not plain.
    """
    suffix = f" ({plain_id(workflow_id)})"
    return name[: _MAX_CHARS - len(suffix)] + suffix


def distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """The names by id, of which those that several share have their ids in them.

    :param names: the names of workflows by their ids.
    :raises ServiceInputError: an id that becomes part of a name is not plain.
    """
    distinct, with_id = dict(names), set[str]()
    # A name with an id in it may in turn be what somebody has called another workflow, which then gets its own.
    while shared := repeated(distinct.values()):
        with_id |= {one for one, name in distinct.items() if name in shared}
        distinct = {one: name_with_id(name, one) if one in with_id else name for one, name in names.items()}
    return distinct
