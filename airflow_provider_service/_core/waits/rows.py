"""Wait until a data table holds rows that meet a filter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.references import DATA_TABLE, PROJECT, data_table_in
from airflow_provider_service._core.rows.options import require_row_filter
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError, ServiceLookupError, ServiceNotFoundError
from airflow_provider_service.links.service import DATA_TABLE_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service._core.waits.conditions import PollResult
    from airflow_provider_service.client import ServiceClient

#: What a trigger stores. It returns no rows, because Airflow logs and stores its events.
STORED = (*DATA_TABLE.fields, *PROJECT.fields, "filter", "min_rows")


@dataclass(frozen=True)
class RowCheck:
    """Polls a data table. Holds only values that a trigger can store."""

    data_table_id: str | None
    data_table_name: str | None
    project_id: str | None
    project_name: str | None
    filter: Mapping[str, Any] | None
    min_rows: int
    #: How many rows to read at most; None for all. A trigger reads no more than it needs.
    limit: int | None
    returns_rows: bool = False

    def __post_init__(self) -> None:
        for reference in (DATA_TABLE, PROJECT):
            reference.check(self, are_rendered=True)
        require_row_filter(self.filter)
        object.__setattr__(self, "filter", _as_json(self.filter))

    @property
    def _table(self) -> str:
        return f"data table {shown(self.data_table_name or self.data_table_id)}"

    @property
    def subject(self) -> str:
        return f"the rows of {self._table}"

    @property
    def unmet(self) -> str:
        return f"{self._table} held fewer than min_rows={self.min_rows} matching rows"

    def poll(self, client: ServiceClient) -> PollResult:
        from airflow_provider_service._core.rows.matching import matching_rows
        from airflow_provider_service._core.rows.values import column_types, types_of_stored_rows
        from airflow_provider_service._core.waits.conditions import PollResult

        try:
            table = data_table_in(self, client)
            matching = matching_rows(client, table, self.filter, types_of_stored_rows(column_types(table)))
            some = islice(matching, self.limit)
            rows = list(some) if self.returns_rows else []
            count = len(rows) or sum(1 for _ in some)
        except ServiceNotFoundError as error:  # as for a name: a table that was deleted does not come back
            raise ServiceLookupError(f"{self._table} does not exist, or this key may not see it") from error
        if self.returns_rows and count == self.limit:
            raise ServiceInputError(
                f"there are more than max_rows={count - 1} rows in {self._table}; narrow the filter, raise max_rows, "
                "or read them with ServiceReadRowsOperator afterwards"
            )
        url = page_url(client.base_url, DATA_TABLE_PAGE, table.project_id or "", table.id)
        returned = {"rows": rows} if self.returns_rows else {}
        result = {"data_table_id": table.id, "count": count, **returned, "url": url}
        return PollResult(count >= self.min_rows, f"{count} matching rows found", result)

    def to_arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in STORED}


def _as_json(filter: Mapping[str, Any] | None) -> Any:
    from airflow_provider_service.client._http.encoding import plain

    def written(value: Any) -> Any:
        # A date without a time zone means UTC in a filter, and is refused elsewhere.
        return value.isoformat() if isinstance(value, datetime) and value.tzinfo is None else plain(value)

    try:
        return json.loads(json.dumps(filter, default=written, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ServiceInputError(f"filter cannot be written as JSON: {error}; nothing was sent") from None
