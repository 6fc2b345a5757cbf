"""How an upsert changes rows: in place, or by inserting the new ones before the old ones are deleted."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException
from starlette.responses import Response
from starlette.types import ASGIApp

from airflow_provider_service._core.rows.upsert import MAX_UPDATE_CALLS
from airflow_provider_service.client import ServiceClient, ServiceConfig, errors
from airflow_provider_service.client.models import DataTable
from airflow_provider_service.hooks._data_tables import HookDataTables
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator

REFUSED = "change_strategy='replace' needs on_stored_duplicates 'remove_copies' or 'keep_newest'"
UPDATE, INSERT, DELETE = "PATCH rows/update", "POST rows", "DELETE rows/delete"


def rows_with(stock: Any, count: int = 300) -> list[dict[str, Any]]:
    return [{"sku": f"s{number:03}", "stock": stock(number)} for number in range(count)]


def load(client: ServiceClient, table: DataTable, rows: list[dict[str, Any]], **options: Any) -> tuple[int, ...]:
    """Upsert rows as a function does with the hook, and return its counts."""
    done = HookDataTables(client).load(rows, data_table_id=table.id, key_columns="sku", **options)
    return tuple(done[count] for count in ("inserted", "updated", "unchanged", "deleted"))


@pytest.fixture
def filled(client, table):
    """300 rows whose other columns hold something too."""
    rest = {"shop": "x", "active": True, "sold_at": "2026-01-02T03:04:05.678Z"}
    client.data_table_rows.insert(table.id, [{**row, **rest} for row in rows_with(lambda number: number)])


@pytest.fixture
def kinds(writes, table):
    """``kinds()`` lists the kinds of writes since it was last called."""
    return lambda: [one.replace(f"/data-tables/{table.id}/", "") for one in writes()]


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
def test_updating_keeps_ids_and_costs_a_call_for_each_group(upsert, held, kinds, caplog):
    before = held("id", "createdAt", "shop", "active", "sold_at")
    kinds()
    caplog.set_level(logging.INFO)
    assert upsert(rows_with(lambda number: -1 - number % 150), change_strategy="update") == (0, 300, 0)
    assert kinds() == [UPDATE] * 150
    assert held("id", "createdAt", "shop", "active", "sold_at") == before
    assert held("stock") == [(-1 - number % 150,) for number in range(300)]
    assert "'auto' and 'replace' would take about" in caplog.text
    assert "Updated 150 of 150 groups" in caplog.text


@pytest.mark.usefixtures("filled")
def test_replacing_takes_few_calls_and_carries_every_column(upsert, held, kinds):
    kinds()
    before = held("sku", "shop", "active", "sold_at")
    new = [{"sku": "new", "stock": 1}]
    assert upsert([*rows_with(lambda number: -number), *new], change_strategy="replace") == (1, 299, 1)
    assert kinds() == [DELETE, INSERT, DELETE], "a dry run that tells whether the key may delete, and two calls"
    assert sorted(held("sku", "shop", "active", "sold_at")) == sorted([*before, ("new", None, None, None)])
    assert dict(held("sku", "stock")) == {**{row["sku"]: row["stock"] for row in rows_with(lambda n: -n)}, "new": 1}
    assert min(held("id")[1:]) > (300,)


@pytest.mark.usefixtures("filled")
def test_rows_between_those_that_are_replaced_stay(upsert, held, kinds):
    kinds()
    changed = {*range(0, 200, 2), *range(200, 290)}
    new = rows_with(lambda number: -1 if number in changed else number)
    assert upsert(new, change_strategy="replace") == (0, 190, 110)
    assert kinds() == [DELETE, INSERT, DELETE, DELETE, DELETE], "one range, and 100 ids in two addresses"
    assert dict(held("sku", "stock")) == {row["sku"]: row["stock"] for row in new}


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("groups", "calls"), [(MAX_UPDATE_CALLS, [UPDATE] * 100), (101, [DELETE, INSERT, DELETE])])
def test_by_default_rows_are_replaced_when_there_are_many_groups(upsert, held, kinds, groups, calls):
    kinds()
    new = rows_with(lambda number: -1 - number % groups)
    assert upsert(new) == (0, 300, 0)
    assert kinds() == calls
    assert dict(held("sku", "stock")) == {row["sku"]: row["stock"] for row in new}


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("policy", ["update_all", "fail"])
def test_replacing_needs_a_policy_that_repairs(client, table, upsert, kinds, policy):
    kinds()
    new = rows_with(lambda number: -number)
    reason = "a task that dies between inserting and deleting would leave duplicate rows for good; nothing was written$"
    with pytest.raises(errors.ServiceInputError, match=f"{REFUSED}, not '{policy}': {reason}"):
        load(client, table, new, change_strategy="replace", on_stored_duplicates=policy)
    assert kinds() == []
    assert upsert(new, change_strategy="auto", on_stored_duplicates=policy) == (0, 299, 1)
    assert set(kinds()) == {UPDATE}


def test_options_that_cannot_be_combined_are_refused_while_the_dag_is_parsed():
    options = {"change_strategy": "replace", "on_stored_duplicates": "fail"}
    with pytest.raises(errors.ServiceInputError, match=REFUSED):
        ServiceUpsertRowsOperator(task_id="task", data_table_id="t", rows=[], key_columns=["sku"], **options)
    with pytest.raises(errors.ServiceInputError, match=REFUSED):
        ServiceUpsertRowsOperator.partial(task_id="task", data_table_id="t", key_columns=["sku"], **options)


def test_options_that_are_rendered_are_refused_before_anything_is_sent(simulator, execute, table):
    class Rendering(ServiceUpsertRowsOperator):
        template_fields = (*ServiceUpsertRowsOperator.template_fields, "on_stored_duplicates")

    options = {"change_strategy": "replace", "on_stored_duplicates": "{{ 'fail' }}"}
    with DAG("dag", schedule=None):
        Rendering.partial(task_id="task", data_table_id="t", key_columns=["sku"], **options).expand(rows=[[]])
    simulator.clear_requests()
    with pytest.raises(AirflowFailException, match=REFUSED):
        execute(Rendering, data_table_id=table.id, rows=[], key_columns=["sku"], **options)
    assert not simulator.requests


@pytest.mark.usefixtures("filled")
def test_a_key_that_may_not_delete_duplicates_nothing(simulator, table, held):
    scopes = ["dataTable:read", "dataTableRow:read", "dataTableRow:create", "dataTableRow:update"]
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.create_key(scopes))
    with ServiceClient(config) as limited, pytest.raises(errors.ServiceMissingScopeError, match="dataTableRow:delete"):
        load(limited, table, rows_with(lambda number: -number), change_strategy="replace")
    assert held("stock") == [(number,) for number in range(300)]


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
def test_by_default_a_key_that_may_not_delete_changes_rows_in_place(simulator, table, held, caplog):
    before = held("id", "createdAt", "sku")
    scopes = ["dataTable:read", "dataTableRow:read", "dataTableRow:create", "dataTableRow:update"]
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.create_key(scopes))
    with ServiceClient(config) as limited:
        assert load(limited, table, rows_with(lambda number: -1 - number)) == (0, 300, 0, 0)
    assert held("id", "createdAt", "sku") == before
    assert held("stock") == [(-1 - number,) for number in range(300)]
    assert "300 groups of equal changes, because the key may not delete rows: " in caplog.text
    assert "dataTableRow:delete" in caplog.text


@pytest.mark.slow
def test_by_default_two_thousand_different_changes_take_a_tenth_of_the_calls_at_most(simulator, client, table, upsert):
    client.data_table_rows.insert(table.id, rows_with(lambda number: number, 2_000))
    simulator.clear_requests()
    assert upsert(rows_with(lambda number: -1 - number, 2_000)) == (0, 2_000, 0)
    assert len(simulator.requests) <= 200


class Break:
    """A service that fails at its n-th write, before or after acting on it, and at all later ones."""

    def __init__(self, app: ASGIApp, writes: int, acts: bool) -> None:
        self.app, self.left, self.acts = app, writes, acts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_write = scope["method"] != "GET" and b"dryRun=true" not in scope["query_string"]
        self.left -= is_write
        if not is_write or self.left > 0:
            await self.app(scope, receive, send)
            return
        if self.left == 0 and self.acts:
            await self.app(scope, receive, self.lose)
        await Response(status_code=500)(scope, receive, send)

    async def lose(self, message: Any) -> None:
        """Take an answer that nobody gets."""


WRITES = {"update": [UPDATE] * 5 + [INSERT, DELETE], "replace": [INSERT, DELETE, DELETE]}
CUTS = [
    (strategy, policy, cut, acts)
    for strategy, writes in WRITES.items()
    for policy in ("remove_copies", "keep_newest")
    for cut in range(1, len(writes) + 1)
    for acts in (False, True)
]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize(("strategy", "policy", "cut", "acts"), CUTS)
def test_a_break_between_any_two_calls_is_repaired_by_the_next_run(
    client, simulator, table, held, strategy, policy, cut, acts
):
    """Rows that are new, changed, unchanged and doubled, and rows of others between them."""
    stored = [{"sku": f"s{number:03}", "stock": number, "shop": f"shop {number}"} for number in range(120)]
    others = [{"sku": "other", "stock": 1}, {"sku": "other", "stock": 1}]
    client.data_table_rows.insert(table.id, [*stored[:100], *others, *stored[100:], *stored[110:]])
    rows = [{"sku": row["sku"], "stock": -(row["stock"] % 5) - 1} for row in stored[5:]]
    rows += [{"sku": row["sku"], "stock": row["stock"]} for row in stored[:5]]
    rows += [{"sku": f"n{number}", "stock": 0} for number in range(5)]
    breaks: list[Break] = []

    def upsert() -> tuple[int, ...]:
        return load(client, table, rows, change_strategy=strategy, on_stored_duplicates=policy)

    simulator.wrap(lambda app: breaks.append(Break(app, cut, acts)) or breaks[0])
    with pytest.raises(errors.ServiceServerError):
        upsert()
    breaks[0].left = len(CUTS)
    upsert()

    shops = {row["sku"]: row["shop"] for row in stored}
    expected = [(row["sku"], row["stock"], shops.get(row["sku"])) for row in rows] + [("other", 1, None)] * 2
    assert sorted(held("sku", "stock", "shop"), key=str) == sorted(expected, key=str)
    assert upsert() == (0, 0, 125, 0)
