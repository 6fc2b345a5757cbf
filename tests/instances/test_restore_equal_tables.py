"""Data tables of equal names, which the personal projects of several users may have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.simulator import ServiceSimulator

Add = Callable[[str], str]


@pytest.fixture
def add(simulator: ServiceSimulator, client: ServiceClient) -> Add:
    """``add(owner)`` creates a table "stock" with a row that names its owner; "own" is the user of the key."""

    def create(owner: str) -> str:
        project_id = None
        if owner != "own":
            user = simulator.in_loop(lambda: simulator.state.add_user(f"{owner}@example.com"))
            project_id = next(one.id for one in client.projects.list() if one.name == f"<{user['email']}>")
        columns = [{"name": "owner", "type": "string"}]
        table = client.data_tables.create("stock", columns, project_id=project_id)
        client.data_table_rows.insert(table.id, [{"owner": owner}])
        return table.id

    return create


def owners(client):
    return sorted(row["owner"] for one in client.data_tables.list() for row in client.data_table_rows.list(one.id))


@pytest.mark.parametrize("is_all", [True, False])
def test_the_table_of_another_user_stays(client, add, execute, path, is_all):
    own, other = add("own"), add("other")
    while own > other:  # the lowest id keeps its name
        client.data_tables.delete(own)
        own = add("own")
    execute(ServiceBackupOperator, path=path)
    client.data_tables.delete(own)
    part = {} if is_all else {"names": ["stock"]}

    restored = execute(ServiceRestoreOperator, path=path, on_conflict="update", **part)

    assert restored["counts"]["data_tables"] == {"created": 1, "updated": 0, "unchanged": int(is_all), "left": 0}
    assert owners(client) == ["other", "own"]
    assert execute(ServiceRestoreOperator, path=path)["outcome"] == "unchanged"


def test_a_table_that_was_created_again_is_restored(client, add, execute, path):
    own = add("own")
    execute(ServiceBackupOperator, path=path)
    client.data_tables.delete(own)
    again = client.data_tables.create("stock", [{"name": "owner", "type": "string"}])

    assert execute(ServiceRestoreOperator, path=path, on_conflict="update")["counts"]["data_tables"]["updated"] == 1
    assert owners(client) == ["own"]
    assert [one.id for one in client.data_tables.list()] == [again.id]


def test_one_of_several_tables_is_not_chosen(client, add, execute, path):
    own = add("own")
    execute(ServiceBackupOperator, path=path)
    client.data_tables.delete(own)
    others = [add("other"), add("third")]

    with pytest.raises(AirflowFailException, match="several data tables 'stock'") as caught:
        execute(ServiceRestoreOperator, path=path, on_conflict="update")

    assert all(one in str(caught.value) for one in others)
    assert owners(client) == ["other", "third"]


def test_a_new_name_may_be_that_of_another_table_of_the_backup(client, add, execute, path):
    add("own")
    copy = client.data_tables.create("copy", [{"name": "owner", "type": "string"}])
    execute(ServiceBackupOperator, path=path)

    new_name = {"names": ["stock"], "mapping": {"data_tables": {"stock": "copy"}}}
    execute(ServiceRestoreOperator, path=path, on_conflict="update", **new_name)

    assert [row["owner"] for row in client.data_table_rows.list(copy.id)] == ["own"]
