"""Several stored rows with the same key, left by an insert that arrived late or stored by users on purpose."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors

TWICE = [{"sku": "a", "stock": 1}, {"sku": "a", "stock": 2}]


@pytest.fixture
def insert(client, table):
    """``insert(*rows)`` puts rows into the table as they are."""
    return lambda *rows: client.data_table_rows.insert(table.id, list(rows))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["remove_copies", "keep_newest"])
def test_duplicates_of_a_late_insert_are_repaired(simulator, client, table, held, repair, policy):
    rows = [{"sku": f"s{number}", "stock": number} for number in range(500)]
    simulator.inject("drop", method="POST", path="/rows$")
    with pytest.raises(errors.ServiceConnectionLostError):
        repair(rows)
    [lost] = [request for request in simulator.requests if request.method == "POST" and request.path.endswith("/rows")]
    assert repair(rows) == (500, 0, 0, 0)
    client.data_table_rows.insert(table.id, lost.body["data"])
    assert len(held("sku")) == 1000

    assert repair(rows, on_stored_duplicates=policy) == (0, 0, 500, 500)
    assert sorted(held("sku", "stock")) == sorted((row["sku"], row["stock"]) for row in rows)
    assert repair(rows, on_stored_duplicates=policy) == (0, 0, 500, 0)


def test_rows_that_become_equal_are_copies(repair, insert, held, caplog):
    insert(*TWICE, {"sku": "b", "stock": 1})
    caplog.set_level("INFO")
    assert repair([{"sku": "a", "stock": 3}, {"sku": "b", "stock": 1}]) == (0, 1, 1, 1)
    assert held("id", "sku", "stock") == [(2, "a", 3), (3, "b", 1)]
    assert "1 keys have several rows in the table, 2 in all" in caplog.text
    assert ", 1 deleted: " in caplog.text


def test_rows_that_differ_in_a_column_that_is_not_given_stay(repair, insert, held):
    insert({"sku": "a", "shop": "x", "stock": 1}, {"sku": "a", "shop": "y", "stock": 2}, {"sku": "a", "shop": "x"})
    assert repair([{"sku": "a", "stock": 2}]) == (0, 1, 1, 1)
    assert held("id", "shop", "stock") == [(2, "y", 2), (3, "x", 2)]
    assert repair([{"sku": "a", "stock": 2}]) == (0, 0, 2, 0)


def test_only_keys_of_the_input_are_considered(repair, insert, held):
    insert(*TWICE, *TWICE)
    assert repair([{"sku": "b"}]) == (1, 0, 0, 0)
    assert held("sku", "stock") == [("a", 1), ("a", 2), ("a", 1), ("a", 2), ("b", None)]


def test_the_newest_of_a_key_is_kept(repair, insert, held):
    insert({"sku": "a", "shop": "x"}, {"sku": "a", "shop": "y"}, {"sku": "a", "shop": "z"})
    assert repair([{"sku": "a", "stock": 2}], on_stored_duplicates="keep_newest") == (0, 1, 0, 2)
    assert held("id", "shop", "stock") == [(3, "z", 2)]


def test_all_rows_of_a_key_can_be_updated(repair, insert, held, writes, table):
    insert(*TWICE)
    writes()
    assert repair([{"sku": "a", "stock": 2}], on_stored_duplicates="update_all") == (0, 1, 1, 0)
    assert held("sku", "stock") == [("a", 2), ("a", 2)]
    assert writes() == [f"PATCH /data-tables/{table.id}/rows/update"]


def test_several_rows_of_a_key_can_fail(repair, insert, held, writes):
    insert(*TWICE, *({"sku": f"b{number}"} for number in range(6) for _ in range(2)))
    writes()
    rows = [{"sku": "new"}, {"sku": "a", "stock": 5}, *({"sku": f"b{number}"} for number in range(6))]
    with pytest.raises(
        AirflowFailException, match=r"\{'sku': 'a'\} has the rows 1, 2; .*, and 2 more keys. Nothing was"
    ):
        repair(rows, on_stored_duplicates="fail")
    assert writes() == []
    assert repair([{"sku": "new"}], on_stored_duplicates="fail") == (1, 0, 0, 0)
    assert len(held("sku")) == 15


def test_the_first_duplicate_rows_are_named(repair, insert):
    insert(*({"sku": "a"} for _ in range(11)), *({"sku": sku} for sku in "bcde" for _ in range(2)))
    with pytest.raises(AirflowFailException) as refused:
        repair([{"sku": sku} for sku in "abcde"], on_stored_duplicates="fail")
    assert str(refused.value).endswith(
        "{'sku': 'a'} has the rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; {'sku': 'b'} has the rows 12, 13; "
        "{'sku': 'c'} has the rows 14, 15; {'sku': 'd'} has the rows 16, 17; {'sku': 'e'} has the rows 18, 19. "
        "Nothing was written; delete the surplus rows, or choose another on_stored_duplicates"
    )


def test_a_row_that_a_page_repeats_is_not_its_own_copy(repair, client, table, simulator, held):
    client.data_table_rows.insert(table.id, [{"sku": "a"}, {"sku": "b"}])

    def twice(app):
        async def layer(scope, receive, send):
            async def doubled(message):
                if scope["method"] == "GET" and scope["path"].endswith("/rows") and message.get("body"):
                    rows = message["body"]
                    begin, end = rows.index(b"[") + 1, rows.rindex(b"]")
                    message = {**message, "body": rows[:end] + b"," + rows[begin:end] + rows[end:]}
                if message["type"] == "http.response.start":
                    kept = [pair for pair in message["headers"] if pair[0] != b"content-length"]
                    message = {**message, "headers": kept}
                await send(message)

            await app(scope, receive, doubled)

        return layer

    simulator.wrap(twice)
    assert repair([{"sku": "a"}, {"sku": "b"}], on_stored_duplicates="keep_newest") == (0, 0, 2, 0)
