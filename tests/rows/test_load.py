"""Loads of rows: the table gets the given rows, even if a load dies at any of its requests and is repeated."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import Any

import pytest
import requests_mock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_service._core.rows.batches import Progress, _row_batches
from airflow_provider_service._core.rows.source_rows import CheckedRows
from airflow_provider_service._core.rows.spool import Spool
from airflow_provider_service._core.rows.target import _count
from airflow_provider_service._core.rows.upsert import LoadResult
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._http.encoding import to_json
from airflow_provider_service.client.errors import ServiceError, ServiceForbiddenError, ServiceInputError
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.moments import soon
from tests.set_clock import SetClock

from .loading import load

TYPES = {"k": "string", "n": "number", "b": "boolean", "d": "date"}
COLUMNS = [{"name": name, "type": kind} for name, kind in TYPES.items()]

KEYS = st.none() | st.sampled_from(["", "a", "A", "b", "ä", "\n", "5", "null", "[1]"])
NUMBERS = st.none() | st.sampled_from([0, 1, -1, 5, 5.5, 1e300, 2**53, 1e21])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": KEYS,
            "n": NUMBERS,
            "b": st.none() | st.booleans(),
            "d": st.none() | st.sampled_from(["2026-01-02T03:04:05.678Z", "0100-01-01T00:00:00.000Z"]),
        }
    ),
    max_size=8,
)
many = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Loader:
    """A table of the simulator, and a client that sends each request once."""

    def __init__(self, simulator: ServiceSimulator, client: ServiceClient) -> None:
        self.simulator, self.client = simulator, client
        self.table = client.data_tables.create("t", COLUMNS)

    def fill(self, rows: list[dict[str, Any]]) -> None:
        self.client.data_table_rows.clear(self.table.id)
        if rows:
            self.client.data_table_rows.insert(self.table.id, rows)

    def load(self, rows: Any, mode: str, keys: tuple[str, ...] = (), **options: Any) -> LoadResult:
        return load(self.client, self.table, rows, mode, keys, **options)

    def held(self) -> list[dict[str, Any]]:
        rows = self.client.data_table_rows.list(self.table.id)
        return [{name: row[name] for name in TYPES} for row in rows]

    def dies_at(self, request: int, *, after_processing: bool) -> None:
        """Let all requests fail from this one on, as they do for a worker that was killed."""
        if request:
            self.simulator.inject("latency", seconds=0, times=request)
        self.simulator.inject("drop", times=1, after_processing=after_processing)
        self.simulator.inject("drop", times=None)


@pytest.fixture
def loader(simulator: ServiceSimulator) -> Iterator[Loader]:
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key, retry_deadline=0)
    with ServiceClient(config) as client:
        yield Loader(simulator, client)


def ordered(rows: Any) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def by_key(rows: list[dict[str, Any]], keys: tuple[str, ...]) -> dict[Any, dict[str, Any]]:
    return {tuple(row[name] for name in keys): row for row in rows}


@many
@given(before=ROWS, rows=ROWS)
def test_a_replace_makes_the_table_equal_in_the_order_of_the_source(loader: Loader, before, rows) -> None:
    loader.fill(before)
    for _ in range(2):
        assert loader.load(rows, "replace").inserted == len(rows)
        assert loader.held() == rows


@many
@given(before=ROWS, rows=ROWS)
def test_an_append_keeps_what_is_there(loader: Loader, before, rows) -> None:
    loader.fill(before)
    loader.load(rows, "append")
    assert loader.held() == before + rows


@pytest.mark.slow
@many
@given(before=ROWS, rows=ROWS, keys=st.sampled_from([("k",), ("n",), ("d",), ("k", "n"), ("b", "k", "d")]))
def test_an_upsert_that_deletes_makes_the_table_equal(loader: Loader, before, rows, keys) -> None:
    loader.fill(before)
    expected = by_key(rows, keys)
    for strategy in ("update", "replace", "auto"):
        loader.load(rows, "upsert", keys, delete_missing=True, change_strategy=strategy)
        assert ordered(loader.held()) == ordered(expected.values())
    again = loader.load(rows, "upsert", keys, delete_missing=True)
    assert (again.inserted, again.updated, again.unchanged, again.deleted) == (0, 0, len(expected), 0)


@many
@given(before=ROWS, rows=ROWS, keys=st.sampled_from([("k",), ("k", "n")]))
def test_an_upsert_keeps_rows_with_other_keys(loader: Loader, before, rows, keys) -> None:
    loader.fill(list(by_key(before, keys).values()))
    loader.load(rows, "upsert", keys)
    assert ordered(loader.held()) == ordered({**by_key(before, keys), **by_key(rows, keys)}.values())


@many
@given(
    before=ROWS,
    rows=ROWS,
    request=st.integers(0, 9),
    after_processing=st.booleans(),
    mode=st.sampled_from(["replace", "upsert"]),
    strategy=st.sampled_from(["update", "replace"]),
)
def test_a_load_that_dies_at_any_request_is_completed_by_the_next(
    loader: Loader, before, rows, request, after_processing, mode, strategy
) -> None:
    loader.fill(before)
    keys, options = ((), {}) if mode == "replace" else (("k",), {"delete_missing": True, "change_strategy": strategy})
    loader.dies_at(request, after_processing=after_processing)
    with suppress(ServiceError):
        loader.load(rows, mode, keys, **options)
    loader.simulator.clear_faults()

    kept = ordered(loader.held())
    if mode == "replace":  # a reader has seen all old rows, or all new ones
        assert all(kept.count(row) >= ordered(before).count(row) for row in kept) or set(ordered(rows)) <= set(kept)
    loader.load(rows, mode, keys, **options)
    expected = rows if mode == "replace" else list(by_key(rows, keys).values())
    assert ordered(loader.held()) == ordered(expected)


def numbered(key: str, count: int) -> list[dict[str, Any]]:
    return [{"k": key, "n": number, "b": None, "d": None} for number in range(count)]


@contextmanager
def half_a_replace(loader: Loader, rows: list[dict[str, Any]]) -> Iterator[Future[LoadResult]]:
    """Replace the rows of a table; the second of the inserts is put off until the block ends."""
    before = len(loader.held())
    loader.simulator.inject("status", status=429, method="POST", path="/rows$", body='"new","n":3', times=None)
    with ThreadPoolExecutor(1) as thread:
        try:
            loading = thread.submit(loader.load, rows, "replace")
            soon(lambda: len(loader.held()) == before + 3)
            yield loading
        finally:
            loader.simulator.clear_faults()


def test_a_late_insert_of_an_earlier_attempt_is_deleted_too(simulator: ServiceSimulator, client: ServiceClient) -> None:
    loader, new = Loader(simulator, client), numbered("new", 9)
    loader.fill(numbered("old", 5))
    with half_a_replace(loader, new) as loading:
        client.data_table_rows.insert(loader.table.id, [{"k": "late"}])
    assert (loading.result().inserted, loading.result().deleted) == (len(new), 5 + 1)
    assert loader.held() == new


def test_of_two_replaces_at_once_the_one_whose_rows_are_gone_fails(
    simulator: ServiceSimulator, client: ServiceClient
) -> None:
    loader, new = Loader(simulator, client), numbered("new", 9)
    loader.fill(numbered("old", 1))
    with half_a_replace(loader, new) as loading:
        assert loader.load(numbered("other", 2), "replace").deleted == 1 + 3
    with pytest.raises(ServiceError, match="are gone, because another task wrote to the table at the same time"):
        loading.result()
    assert loader.held() == numbered("other", 2) + new[3:]
    loader.load(new, "replace")
    assert loader.held() == new


@pytest.mark.parametrize("method", ["GET", "DELETE"], ids=["before it looks", "before it deletes"])
def test_a_replace_whose_rows_another_one_replaces_after_all_are_inserted_fails(
    loader: Loader, before_request, method
) -> None:
    other = numbered("other", 2)
    loader.fill(numbered("old", 1))

    def replace(somebody_else: ServiceClient) -> None:
        load(somebody_else, loader.table, other, "replace")

    before_request("POST", "/rows$", lambda _: before_request(method, "/rows", replace))
    with pytest.raises(ServiceError, match="are gone, because another task wrote to the table at the same time"):
        loader.load(numbered("new", 3), "replace")
    assert loader.held() == other


@pytest.mark.parametrize("processed", [1, 3])
def test_a_workflow_may_delete_new_rows_while_others_are_inserted(
    simulator: ServiceSimulator, client: ServiceClient, processed
) -> None:
    loader, new = Loader(simulator, client), numbered("new", 9)
    loader.fill(numbered("old", 1))
    with half_a_replace(loader, new) as loading:
        some = {"filters": [{"columnName": "n", "condition": "lt", "value": processed}]}
        client.data_table_rows.delete(loader.table.id, some)
    assert loading.result().inserted == len(new)
    assert loader.held() == new[processed:]


def wide(numbers: Iterable[int]) -> list[dict[str, Any]]:
    return [{"k": str(number) + "x" * 700, "n": number, "b": None, "d": None} for number in numbers]


def test_rows_that_no_answer_holds_at_once_are_replaced_and_counted(simulator: ServiceSimulator) -> None:
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key, max_answer_mib=1)
    with ServiceClient(config) as client:
        loader = Loader(simulator, client)
        loader.fill([{**row, "k": row["k"] * 10} for row in wide(range(400))])
        new = wide(range(2_000, 2_003))
        assert (loader.load(new, "replace").deleted, loader.held()) == (400, new)
        loader.fill(wide(range(1_500)))
        assert (loader.load(new, "replace").deleted, loader.held()) == (1_500, new)


def test_a_count_costs_by_rows_and_not_by_ids(simulator: ServiceSimulator, loader: Loader) -> None:
    loader.fill(wide(range(1)))
    for _ in range(4):  # ids 1 and 10,002
        loader.client.data_table_rows.insert(loader.table.id, [{"n": 1}] * 2_500)
    loader.client.data_table_rows.insert(loader.table.id, wide([2]))
    one = {"type": "and", "filters": [{"columnName": "n", "value": 1}]}
    loader.client.data_table_rows.delete(loader.table.id, one)
    simulator.clear_requests()
    assert loader.load(wide([3]), "replace").deleted == 2
    assert len(simulator.requests) <= 7


@pytest.mark.parametrize(("fault", "status"), [("status", 500), ("html", 200)])
def test_a_load_whose_count_fails_replaces_the_rows_and_knows_no_count(
    simulator: ServiceSimulator, loader: Loader, fault, status, caplog
) -> None:
    loader.fill(wide(range(3)))
    simulator.inject(fault, status=status, method="GET", path="/rows$", times=1)
    new = wide(range(5, 9))
    assert (loader.load(new, "replace").deleted, loader.held()) == (None, new)
    assert "The rows that are to be deleted could not be counted" in caplog.text


def test_a_count_ends_although_the_service_ignores_its_filter(
    requests_mock: requests_mock.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    config = ServiceConfig(base_url="https://n8n.test", api_key="key", page_size=2)
    page = {"data": [{"id": 1}, {"id": 2}], "nextCursor": "more"}
    requests_mock.get(f"{config.api_root}/data-tables/t/rows", json=page)
    with ServiceClient(config) as client:
        assert _count(client, "t") is None
    assert "a page was repeated" in caplog.text


def test_a_key_that_may_not_delete_fails_before_anything_is_written(
    simulator: ServiceSimulator, loader: Loader
) -> None:
    before = [{"k": "a", "n": 1, "b": None, "d": None}]
    loader.fill(before)
    simulator.inject("status", status=403, method="DELETE", times=None)
    for mode, keys in (("replace", ()), ("upsert", ("k",))):
        with pytest.raises(ServiceForbiddenError):
            loader.load([{**before[0], "n": 2}], mode, keys, **({"delete_missing": True} if keys else {}))
    simulator.clear_faults()
    assert loader.held() == before


def test_stored_duplicates_can_fail_before_anything_is_written(loader: Loader) -> None:
    double = [{"k": "z", "n": 1, "b": None, "d": None}] * 2
    loader.fill(double)
    rows = [{"k": key, "n": 2, "b": None, "d": None} for key in "abcdefz"]
    with pytest.raises(ServiceInputError, match=r"the table has several rows with the same key: \{'k': 'z'\}"):
        loader.load(rows, "upsert", ("k",), on_stored_duplicates="fail")
    assert loader.held() == double


@pytest.mark.parametrize("strategy", ["update", "replace"])
@pytest.mark.parametrize("delete_missing", [False, True])
def test_a_later_chunk_leaves_an_inserted_row_that_has_the_id_of_another(
    loader: Loader, meanwhile, strategy, delete_missing
) -> None:
    before = [{"k": key, "n": 1, "b": None, "d": None} for key in "abyz"]
    loader.fill(before)
    highest = {"filters": [{"columnName": "k", "condition": "gte", "value": "y"}]}
    meanwhile(
        f"/data-tables/{loader.table.id}/rows",
        lambda other: other.data_table_rows.delete(loader.table.id, highest),
    )
    # In the first chunk of three rows, a new row gets the id of y, which changes in the second; z is unchanged there.
    rows = [{"k": "new", "n": 1, "b": None, "d": None}, *before[:2], {**before[2], "n": 2}, before[3]]
    done = loader.load(rows, "upsert", ("k",), change_strategy=strategy, delete_missing=delete_missing)
    assert ordered(loader.held()) == ordered(rows)
    assert (done.inserted, done.updated, done.unchanged, done.deleted) == (3, 0, 2, 0)


@pytest.mark.slow
def test_the_whole_table_is_read_once_at_most(simulator: ServiceSimulator, loader: Loader) -> None:
    loader.fill([{"k": str(number), "n": number, "b": None, "d": None} for number in range(600)])
    simulator.clear_requests()
    loader.load([{"k": str(number), "n": -number} for number in range(500)], "upsert", ("k",), delete_missing=True)
    reads = [one for one in simulator.requests if one.method == "GET"]
    assert len(reads) == 3  # pages of 250
    assert len(loader.held()) == 500


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows() -> None:
    def peak(count: int) -> int:
        rows = ({"k": f"key {number}" * 5, "n": number, "b": True, "d": None} for number in range(count))
        tracemalloc.start()
        with Spool(chunk_rows=500) as spool:
            checked = CheckedRows(TYPES, ("k",), "last", spool.requested, spool.rounded_keys)
            for number, row in enumerate(rows, start=1):
                checked.add(number, row)
                spool.store({**row, "id": number}, (row["k"],), with_others=True)
                spool.store({"id": -number}, (number,), with_others=True)
            seen = sum(len(requested) + len(stored) for requested, stored in spool.compared())
            assert (seen, sum(map(len, spool.other_ids()))) == (2 * count, count)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1_000)
    assert peak(6_000) < 1.1 * peak(2_000)


def test_long_rows_are_not_all_in_memory_at_once() -> None:
    with Spool() as spool:
        for number in range(500):
            spool.requested[(number,)] = {"k": str(number) + "x" * 100_000}
        tracemalloc.start()
        seen = [len(requested) for requested, _ in spool.compared()]
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (sum(seen), highest < 50 * 1024**2) == (500, True)


def test_deletions_are_logged_if_there_are_any(loader: Loader, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for rows in ([{"k": "a"}, {"k": "b"}], [{"k": "a"}]):
        caplog.clear()
        loader.load(rows, "upsert", ("k",), delete_missing=True)
        deletions = [line.partition(" rows")[0] for line in caplog.messages if line.startswith("Deleted")]
        assert deletions == (["Deleted 1 of 1"] if len(rows) == 1 else [])


def test_progress_names_rate_and_percentage(caplog: pytest.LogCaptureFixture, set_clock: SetClock) -> None:
    caplog.set_level("INFO")
    progress = Progress("Inserted", 40_000)
    for count in (8_000, 10_000, 15_000, 30_000):
        set_clock.advance(5)
        progress.reach(count)
    progress.report()  # says nothing new
    open_end = Progress("Read")
    assert list(open_end.counting("abc")) == ["a", "b", "c"]
    set_clock.advance(2)
    open_end.report()
    assert [record.getMessage() for record in caplog.records] == [
        "Inserted 10,000 of 40,000 rows (25%), 1,000 rows a second",
        "Inserted 30,000 of 40,000 rows (75%), 1,500 rows a second",
        "Read 3 rows, 2 rows a second",
    ]


@given(
    count=st.integers(0, 350),
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=5),
    max_rows=st.integers(1, 250),
    max_bytes=st.integers(20, 10_000),
)
def test_batches_hold_all_rows_in_order_and_are_as_large_as_allowed(
    count: int, sizes: list[int], max_rows: int, max_bytes: int
) -> None:
    rows = [{"k": "x" * sizes[number % len(sizes)], "n": number} for number in range(count)]
    batches = list(_row_batches(rows, max_rows, max_bytes))

    assert [row for batch in batches for row in batch] == rows
    for batch, later in zip_longest(batches, batches[1:]):
        assert 1 <= len(batch) <= max_rows
        assert len(batch) == 1 or len(to_json(batch)) <= max_bytes
        if later is not None:  # there was no room for another row, but for the brackets around each
            assert len(batch) == max_rows or len(to_json([*batch, later[0]])) > max_bytes - 2 * len(batch)
