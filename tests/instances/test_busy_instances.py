"""A backup of an instance that others change while it is read."""

from __future__ import annotations

import json
from zipfile import ZipFile

import pytest

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.backups import ServiceBackupOperator


@pytest.fixture
def table(client):
    made = client.data_tables.create("big", [{"name": "n", "type": "number"}, {"name": "m", "type": "string"}])
    client.data_table_rows.insert(made.id, [{"n": number, "m": "x"} for number in range(600)])
    return made


def test_no_row_is_missing_because_earlier_ones_are_deleted(execute, table, meanwhile, tmp_path):
    first = {"filters": [{"columnName": "n", "condition": "lt", "value": 100}]}
    meanwhile(f"/data-tables/{table.id}/rows", lambda other: other.data_table_rows.delete(table.id, first))
    execute(ServiceBackupOperator, path=str(tmp_path / "backup.zip"))
    with ZipFile(tmp_path / "backup.zip") as archive:
        lines = archive.read("data_tables/big.jsonl").splitlines()
    assert [json.loads(one)["n"] for one in lines] == [*range(600)]


def test_a_column_that_is_renamed_fails_the_backup(execute, client, table, meanwhile, tmp_path):
    column = next(one for one in client.data_table_columns.list(table.id) if one.name == "m")

    def rename(other):
        other.data_table_columns.update(table.id, column.id, name="other")

    meanwhile(f"/data-tables/{table.id}/rows", rename)
    with pytest.raises(ServiceError, match=r"'big' no longer has the column 'm'.*run the task again"):
        execute(ServiceBackupOperator, path=str(tmp_path / "backup.zip"))
    assert list(tmp_path.iterdir()) == []
    execute(ServiceBackupOperator, path=str(tmp_path / "backup.zip"))
