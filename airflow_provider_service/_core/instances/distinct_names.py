"""Make names of workflows or projects distinct, by appending the ids to names that several of them have."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_service._airflow.arguments import repeated
from airflow_provider_service.client._constraints import plain_id

#: Maximum length of the name of a workflow.
_MAX_CHARS = 128


def name_with_id(name: str, object_id: str) -> str:
    """Return the name of a workflow or project with its id appended.

    :raises ServiceInputError: the id is not plain.
    """
    suffix = f" ({plain_id(object_id)})"
    return name[: _MAX_CHARS - len(suffix)] + suffix


def distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return the names by id, with the ids appended to names that several objects have.

    :param names: the names of workflows or projects by their ids.
    :raises ServiceInputError: an id that becomes part of a name is not plain.
    """
    distinct, with_id = dict(names), set[str]()
    # A name with an id may in turn be the name of another object, which then gets its own id appended.
    while shared := repeated(distinct.values()):
        with_id |= {one for one, name in distinct.items() if name in shared}
        distinct = {one: name_with_id(name, one) if one in with_id else name for one, name in names.items()}
    return distinct
