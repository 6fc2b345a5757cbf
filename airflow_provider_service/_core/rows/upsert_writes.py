"""Write the plan of an upsert in an order that loses no row wherever it is interrupted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.rows.batches import any_of, exactly_in_url, insert_in_batches
from airflow_provider_service.client.errors import ServiceForbiddenError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.options import ChangeStrategy
    from airflow_provider_service._core.rows.upsert_plan import UpsertPlan
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)

#: Maximum number of calls with which ``auto`` updates rows in place: about a second.
MAX_UPDATE_CALLS = 100
#: Number of inserted rows whose ids are returned to find out the lowest.
MAX_RETURNED_IDS = 1_000
#: Calls between two log lines of progress.
CALLS_A_LINE = 500


def write_plan(
    client: Resources, table_id: str, plan: UpsertPlan, strategy: ChangeStrategy, *, with_first_id: bool = False
) -> int | None:
    """Write a plan: change, insert, and delete last, so that a newer row exists for every row that is deleted.

    :param with_first_id: find out the id of the first inserted row even if the plan deletes no row.
    :returns: that id: no row that was there before has it or a higher one. None if it is not known.
    :raises ServiceApiError: a call failed; earlier writes stay, and the next upsert completes the rest.
    """
    updates = [(values, condition) for values, ids in plan.equal_changes() for condition in any_of("id", ids)]
    replaced = [change.row["id"] for change in plan.changes]
    if _replaces(client, table_id, strategy, len(updates), replaced):
        inserts = [*plan.inserts, *(change.replacement for change in plan.changes)]
        ids_to_delete = [*plan.surplus, *replaced]
    else:
        _update(client, table_id, updates)
        inserts, ids_to_delete = plan.inserts, plan.surplus
    first_id = _insert(client, table_id, inserts, with_first_id=with_first_id or bool(ids_to_delete))
    _delete(client, table_id, [one for one in ids_to_delete if first_id is None or one < first_id])
    return first_id


def _insert(client: Resources, table_id: str, rows: Sequence[Row], *, with_first_id: bool) -> int | None:
    ids: list[int] = []
    # The service inserts 10,000 rows in a third of the time if it need not return their ids.
    first = rows[:MAX_RETURNED_IDS] if with_first_id else []
    for _ in insert_in_batches(client, table_id, first, note_ids=lambda some: ids.extend(row["id"] for row in some)):
        pass
    for inserted in insert_in_batches(client, table_id, rows[len(first) :]):
        # A load writes many plans and logs its own progress.
        if len(first) + inserted < len(rows):
            log.info("Inserted %d of %d rows", len(first) + inserted, len(rows))
    return min(ids, default=None)


def _replaces(
    client: Resources, table_id: str, strategy: ChangeStrategy, update_calls: int, replaced: Sequence[int]
) -> bool:
    if not update_calls or (strategy != "replace" and update_calls <= MAX_UPDATE_CALLS):
        return False
    in_place = f"{len(replaced)} rows change in place, with a call for each of {update_calls} groups of equal changes"
    if strategy == "update":
        few = 1 + len(list(exactly_in_url(replaced)))
        log.info("%s; 'auto' and 'replace' would take about %d calls and give the rows new ids", in_place, few)
        return False
    try:
        require_deletable(client, table_id)
    except ServiceForbiddenError as error:
        if strategy == "replace":
            raise
        log.warning("%s, because the key may not delete rows: %s", in_place, error)
        return False
    return True


def require_deletable(client: Resources, table_id: str) -> None:
    """Fail before rows are duplicated if the key may insert but not delete.

    :raises ServiceForbiddenError: the key may not delete rows.
    """
    # No row has this id.
    client.data_table_rows.delete(table_id, next(iter(exactly_in_url([0]))), dry_run=True)


def _update(client: Resources, table_id: str, updates: Sequence[tuple[Row, RowFilter]]) -> None:
    for number, (values, condition) in enumerate(updates, start=1):
        client.data_table_rows.update(table_id, filter=condition, data=values)
        metrics.count(metrics.ROWS_UPDATED, len(condition["filters"]))
        if number % CALLS_A_LINE == 0 or number == len(updates):
            log.info("Updated %d of %d groups of rows with equal changes", number, len(updates))


def delete_rows(client: Resources, table_id: str, ids: Sequence[int]) -> None:
    """Delete exactly the rows with these ids."""
    for condition in exactly_in_url(ids):
        client.data_table_rows.delete(table_id, condition)
    metrics.count(metrics.ROWS_DELETED, len(ids))


def _delete(client: Resources, table_id: str, ids: Sequence[int]) -> None:
    delete_rows(client, table_id, ids)
    if ids:
        log.info("Deleted %d rows that have a newer row with the same key", len(ids))
