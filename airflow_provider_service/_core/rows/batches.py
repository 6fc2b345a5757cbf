"""Send many rows or row ids in as few calls as the server allows, and log the progress of such a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.arguments import BATCH_BYTES, BATCH_ROWS
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._http.encoding import encode_query, to_json
from airflow_provider_service.client.errors import ServiceError, ServiceInsertInDoubtError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Condition, RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)

#: Conditions in a filter that is sent in a body: the server fails at 1,000.
MAX_CONDITIONS = 900
#: Characters of an encoded filter that is sent in the URL: common proxies refuse a request line of 8 KiB.
MAX_URL_CHARS = 7_000
#: Characters of a text that certainly fits into a URL: encoded, each takes 12 at most.
CERTAINLY_SHORT_CHARS = 500
#: Number of consecutive ids from which on a range takes fewer calls than a list of the ids.
MIN_RANGE = 80
#: Rows of a call that returns their ids: the service inserts each by a statement of its own, within the call's timeout.
MAX_ROWS_WITH_IDS = 1_000
#: Number of rows whose size is measured at once, which takes a quarter of the time.
MEASURED_TOGETHER = 100
#: Seconds between two lines of progress in the log.
LINE_SECONDS = 10.0

Item = TypeVar("Item")


def insert_in_batches(
    client: Resources,
    data_table_id: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    max_rows: int = BATCH_ROWS,
    max_bytes: int = BATCH_BYTES,
    note_ids: Callable[[list[Row]], None] | None = None,  # gets the inserted rows of each call, with only their ids
    may_repeat: bool = True,  # whether the caller can be repeated although some rows were inserted
) -> Iterator[int]:
    """Insert rows, and after each call yield the number of rows inserted so far. Each call is all or nothing."""
    done = 0
    if note_ids is not None:
        max_rows = min(max_rows, MAX_ROWS_WITH_IDS)
    for batch in _row_batches(rows, max_rows, max_bytes):
        try:
            if note_ids is None:
                client.data_table_rows.insert(data_table_id, batch)
            else:
                note_ids(client.data_table_rows.insert(data_table_id, batch, return_type="id"))
        except ServiceError as error:
            if may_repeat or (error.not_processed and not done):
                raise
            doubt = "" if error.not_processed else f", the next {len(batch):,} may have been"
            raise ServiceInsertInDoubtError(
                f"{error}; {done:,} rows were inserted{doubt}, and the other rows were not. Another attempt would "
                "insert rows twice: look into the table, and insert only what it lacks; an upsert can be repeated"
            ) from error
        metrics.count(metrics.ROWS_INSERTED, len(batch))
        done += len(batch)
        yield done


def _row_batches(rows: Iterable[Mapping[str, Any]], max_rows: int, max_bytes: int) -> Iterator[list[Row]]:
    batch: list[Row] = []
    total, remaining = 0, map(dict, rows)
    while together := list(islice(remaining, min(MEASURED_TOGETHER, max_rows - len(batch)))):
        size_together = len(to_json(together).encode())
        if total + size_together <= max_bytes:
            parts = [(together, size_together)]
        else:
            parts = [([row], len(to_json([row]).encode())) for row in together]
        for part, size in parts:
            if batch and total + size > max_bytes:
                yield batch
                batch, total = [], 0
            batch += part
            total += size
        if len(batch) == max_rows:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def any_of(column: str, values: Iterable[Any]) -> Iterator[RowFilter]:
    """Filters for a request's body that together match the rows with one of the values in the column."""
    conditions = (_equals(column, value) for value in values)
    while batch := list(islice(conditions, MAX_CONDITIONS)):
        yield {"type": "or", "filters": batch}


def any_of_in_url(column: str, values: Iterable[Any]) -> Iterator[RowFilter]:
    """Filters for a request's URL that together match the rows with one of the values in the column."""
    batch: list[Condition] = []
    total = 0
    for value in values:
        condition = _equals(column, value)
        length = _encoded_length(condition)
        if batch and (len(batch) >= MAX_CONDITIONS or total + length > MAX_URL_CHARS):
            yield {"type": "or", "filters": batch}
            batch, total = [], 0
        batch.append(condition)
        total += length
    if batch:
        yield {"type": "or", "filters": batch}


def exactly_in_url(row_ids: Iterable[int]) -> Iterator[RowFilter]:
    """Filters for a request's URL that together match exactly the rows with these ids."""
    # A range has no gap into which others could insert a row in the meantime.
    named: list[int] = []
    ranges: list[RowFilter] = []
    for _, run in groupby(enumerate(sorted(set(row_ids))), key=lambda pair: pair[1] - pair[0]):
        ids = [row_id for _, row_id in run]
        if len(ids) < MIN_RANGE:
            named += ids
        else:
            first: Condition = {"columnName": "id", "condition": "gte", "value": ids[0]}
            last: Condition = {"columnName": "id", "condition": "lte", "value": ids[-1]}
            ranges.append({"type": "and", "filters": [first, last]})
    return chain(ranges, any_of_in_url("id", named))


def fits_in_url(value: str | None) -> bool:
    if value is None or len(value) <= CERTAINLY_SHORT_CHARS:
        return True
    return _encoded_length(_equals("", value)) <= MAX_URL_CHARS


def _equals(column: str, value: Any) -> Condition:
    return {"columnName": column, "condition": "eq", "value": value}


def _encoded_length(condition: Condition) -> int:
    return len(encode_query({"": to_json(condition) + ","}))


class Progress:
    """Logs the number of rows, the rate per second, and the percentage if the total is known."""

    def __init__(self, action: str, total: int | None = None) -> None:
        self._action, self._total = action, total
        self._began = self._logged = clock().monotonic()
        self._logged_count: int | None = None
        self.count = 0

    def reach(self, count: int) -> None:
        """Update the number of finished rows, and log a line if one is due."""
        self.count = count
        if clock().monotonic() - self._logged >= LINE_SECONDS:
            self.report()

    def report(self) -> None:
        """Log a line now, unless the last one said the same."""
        if self.count == self._logged_count:
            return
        self._logged, self._logged_count = clock().monotonic(), self.count
        rate = self.count / max(self._logged - self._began, 0.001)
        of = "" if self._total is None else f" of {self._total:,}"
        share = f" ({100 * self.count // self._total}%)" if self._total else ""
        log.info("%s %s%s rows%s, %s rows a second", self._action, f"{self.count:,}", of, share, f"{rate:,.0f}")

    def counting(self, rows: Iterable[Item]) -> Iterator[Item]:
        for row in rows:
            yield row
            self.reach(self.count + 1)
