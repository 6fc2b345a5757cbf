"""Compare data tables and their columns with a declaration. Columns and rows are never removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import as_list, require, require_choice
from airflow_provider_service._core.instances.desired_state.changes import DesiredStateChange, DesiredStatePlan, Prune
from airflow_provider_service._core.instances.desired_state.reading import named_values, require_short
from airflow_provider_service._core.rows.options import COLUMN_TYPES
from airflow_provider_service.client._constraints import require_new_name
from airflow_provider_service.client._lookup import find_data_table
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import DataTable

MAX_TABLE_CHARS = 128


def types_by_name(columns: Any) -> dict[str, str]:
    """Read the declared columns of a table, which map names to types, or list ``{"name", "type"}``.

    :raises ServiceInputError: a column has an invalid name or type, or a name occurs twice.
    """
    pairs = (
        list(columns.items())
        if isinstance(columns, Mapping)
        else [(one.get("name"), one.get("type")) for one in as_list("columns", columns) if isinstance(one, Mapping)]
    )
    # The service does not distinguish column names that differ only in case.
    names = {name.lower() for name, _ in pairs if isinstance(name, str)}
    require(
        len(names) == len(columns),
        "columns must map names to types, or list {'name', 'type'}; each name once, regardless of case",
    )
    for name, kind in pairs:
        require_choice(f"the type of column {name!r}", kind, COLUMN_TYPES)
        require_new_name(name)
    return dict(pairs)


def create_table(client: Resources, name: str, desired: Mapping[str, str], project_id: str | None) -> DataTable:
    """Create a table with its declared columns.

    :raises ServiceConflictError: the project has a table with this name.
    """
    columns = [{"name": column, "type": kind} for column, kind in desired.items()]
    return client.data_tables.create(name, columns, project_id=project_id)


def missing_columns(table: DataTable, desired: Mapping[str, str]) -> list[str]:
    """Return the declared columns that a table lacks.

    :raises ServiceInputError: the table has a declared column with another type, or in another case.
    """
    existing = {column.name: column.type for column in table.columns or ()}
    # The service answers with an internal error to a name that differs from an existing one only in case.
    folded = {name.casefold(): name for name in existing}
    alike = [
        f"{name!r} differs only in case from {folded[name.casefold()]!r}"
        for name in desired
        if name not in existing and name.casefold() in folded
    ]
    require(not alike, f"data table {table.name!r} ({table.id}) cannot get these columns: {', '.join(alike)}")
    differing = [
        f"{name!r} is {existing[name]}, not {kind}"
        for name, kind in desired.items()
        if existing.get(name, kind) != kind
    ]
    require(
        not differing,
        f"data table {table.name!r} ({table.id}) exists with columns of other types: {', '.join(differing)}; "
        "the service cannot change the type of a column",
    )
    return [name for name in desired if name not in existing]


def add_columns(client: Resources, table: DataTable, desired: Mapping[str, str], missing: Sequence[str]) -> None:
    """Add columns to a table."""
    for name in missing:
        client.data_table_columns.create(table.id, name, desired[name])  # type: ignore[arg-type]


def plan_data_tables(client: Resources, desired: Any, prune: Prune, *, project_id: str | None) -> DesiredStatePlan:
    """Plan the changes that bring data tables and their columns to the declared state.

    :param desired: the columns of each table by its name, as for :func:`types_by_name`.
    :param project_id: id of the project of the tables; None to look them up in all projects, and to create missing ones
        in the personal project of the key's user.
    :raises ServiceInputError: a table or a column cannot have its declared state; the message names all of them.
    :raises ServiceLookupError: several projects have a table of the same declared name.
    """
    tables = {name: types_by_name(columns) for name, columns in named_values("data_tables", desired).items()}
    require_short("data table", tables, MAX_TABLE_CHARS)
    existing = {name: find_data_table(client, name, project_id=project_id) for name in tables}
    changes, problems = [], []
    for name, columns in tables.items():
        try:
            changes += _changes(name, columns, existing[name], project_id)
        except ServiceInputError as error:
            problems.append(str(error))
    require(not problems, "; ".join(problems))
    in_project = None if project_id is None else {"projectId": project_id}
    every = client.data_tables.list(filter=in_project) if prune != Prune() else ()
    deleted = prune.deletions(every, tables, lambda client, one: client.data_tables.delete(one.id))
    return DesiredStatePlan([*changes, *deleted], len(tables) - len(changes))


def _changes(
    name: str, desired: dict[str, str], table: DataTable | None, project_id: str | None
) -> list[DesiredStateChange]:
    if table is None:
        create = partial(create_table, name=name, desired=desired, project_id=project_id)
        return [DesiredStateChange("create", name, {"columns": desired}, create)]
    missing = missing_columns(table, desired)
    if not missing:
        return []
    add = partial(add_columns, table=table, desired=desired, missing=missing)
    return [DesiredStateChange("update", name, {"added_columns": {column: desired[column] for column in missing}}, add)]
