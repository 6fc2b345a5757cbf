"""Filters compare dates exactly on a real server, with SQLite as well as with PostgreSQL (DEPLOYMENT=queue)."""

from __future__ import annotations

import pytest

from airflow_provider_service._core.rows.matching import exact_filters
from tests.operators.test_dates_in_filters import ORDER, TIMES, expected, found, where

from .running import connect
from .servers import LiveServer

FINER_TIMES = ["2026-01-15T08:00:00.000001Z", "2026-01-15T08:00:00.0009+00:00", "2026-01-15T23:59:59.999999999Z"]


@pytest.mark.smoke
def test_times_of_a_day_are_told_apart(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    if live_server.generation.major == 1:
        pytest.skip("this generation has no data tables")
    with connect(monkeypatch, live_server) as client:
        table = client.data_tables.create("sales", [{"name": "n", "type": "number"}, {"name": "at", "type": "date"}])
        client.data_table_rows.insert(table.id, [{"n": n, "at": at} for n, at in enumerate(TIMES)])
        created = next(iter(client.data_table_rows.list(table.id)))["createdAt"]

        for comparison in ORDER:
            finer = () if comparison in ("eq", "neq") else FINER_TIMES
            for time in (*filter(None, TIMES), *finer):
                seen = found(client, table, where(("at", comparison, time)))
                assert (comparison, time, seen) == (comparison, time, expected(comparison, time))
        assert exact_filters(client, table, where(("createdAt", "lt", created)), list) == []
        assert len(list(exact_filters(client, table, where(("createdAt", "gte", created)), list))) == len(TIMES)
        finer = created.replace("Z", "001Z")
        assert exact_filters(client, table, where(("createdAt", "lt", finer)), len) > 0
        client.data_tables.delete(table.id)
