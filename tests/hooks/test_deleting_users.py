"""Deleting a user, whose workflows and credentials the service deletes as well."""

from __future__ import annotations

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.errors import ServiceForbiddenError, ServiceInputError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task

SECRET = {"name": "X", "value": "y"}


@pytest.fixture
def leaving(simulator: ServiceSimulator) -> tuple[str, str]:
    """The ids of a user and of the user's personal project, on a service without a license for projects."""
    simulator.state.licensed = False
    user = simulator.state.add_user("ana@example.com", first_name="Ana", last_name="Lee")
    simulator.state.add_user("juliana@example.com", first_name="Juliana", last_name="Lee")
    return user["id"], project_of(simulator, "ana@example.com")


def project_of(simulator: ServiceSimulator, email: str) -> str:
    return next(str(one["id"]) for one in simulator.state.projects.all() if one["name"].endswith(f"<{email}>"))


def test_a_user_who_owns_workflows_or_credentials_is_not_deleted(
    simulator: ServiceSimulator, client: ServiceClient, leaving: tuple[str, str]
) -> None:
    user_id, project_id = leaving
    flow = client.workflows.create("Nightly sync", [], {}, {})
    credential = client.credentials.create("mail", "httpHeaderAuth", SECRET)
    for transfer, one in ((client.workflows.transfer, flow), (client.credentials.transfer, credential)):
        transfer(one.id, project_id)

    with ServiceHook() as hook, pytest.raises(ServiceInputError) as refused:
        hook.users.delete(user_id)

    assert str(refused.value) == (
        "the user ana@example.com owns the credential 'mail', the workflow 'Nightly sync', which the service would "
        "delete together with the user; nothing was deleted. Move them to another project first, with "
        "workflows.transfer and credentials.transfer, copy data tables, or give delete_workflows=True"
    )
    client.credentials.transfer(credential.id, simulator.state.personal_project_id)
    generic = ServiceOperator(task_id="t", resource="users", action="delete", arguments={"user_id": user_id})
    with pytest.raises(Exception, match="owns the workflow 'Nightly sync', which"):
        run_task(generic)
    assert (client.users.get(user_id).email, client.workflows.get(flow.id).name) == ("ana@example.com", "Nightly sync")

    client.users.delete(user_id, delete_workflows=True)

    assert [one.name for one in client.workflows.list()] == []
    assert [one.name for one in client.credentials.list()] == ["mail"]


def test_a_user_who_owns_data_tables_is_not_deleted(
    simulator: ServiceSimulator, client: ServiceClient, leaving: tuple[str, str]
) -> None:
    user_id, project_id = leaving
    column = [{"name": "a", "type": "string"}]
    table = client.data_tables.create("precious", column, project_id=project_id)
    client.data_tables.create("other", column)

    with pytest.raises(ServiceInputError, match="owns the data table 'precious', which the service would delete"):
        client.users.delete(user_id)

    assert client.data_tables.get(table.id).name == "precious"
    client.data_tables.delete(table.id)
    client.users.delete(user_id)
    assert [one.name for one in client.data_tables.list()] == ["other"]


def test_a_user_who_owns_nothing_is_deleted_whatever_others_own(
    simulator: ServiceSimulator, client: ServiceClient, leaving: tuple[str, str]
) -> None:
    others = (simulator.state.personal_project_id, project_of(simulator, "juliana@example.com"))
    for place in others:
        client.workflows.create(f"of {place}", [], {}, {}, project_id=place)
        client.credentials.create(f"of {place}", "httpHeaderAuth", SECRET, project_id=place)

    client.users.delete(leaving[0])

    assert {one.email for one in client.users.list()} == {"owner@example.com", "juliana@example.com"}
    assert {one.name for one in client.workflows.list()} == {f"of {place}" for place in others}


def test_an_error_names_only_the_first_of_many(client: ServiceClient, leaving: tuple[str, str]) -> None:
    for number in range(12):
        client.workflows.create(f"w{number}", [], {}, {}, project_id=leaving[1])

    with pytest.raises(ServiceInputError, match=r"(the workflow 'w\d+', ){9}the workflow 'w\d+' and 2 more, which"):
        client.users.delete(leaving[0])


@pytest.mark.parametrize("missing", ["workflow:list", "credential:list", "dataTable:list"])
def test_a_key_that_cannot_look_deletes_nobody_unless_asked_by_name(
    simulator: ServiceSimulator, client: ServiceClient, leaving: tuple[str, str], missing: str
) -> None:
    looking = {"user:read", "user:list", "workflow:list", "workflow:read", "credential:list", "dataTable:list"}
    scopes = {"user:delete", *looking} - {missing}
    key = simulator.state.add_key(scopes).secret
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=key)) as other:
        with pytest.raises(ServiceForbiddenError):
            other.users.delete(leaving[0])
        assert client.users.get(leaving[0]).email == "ana@example.com"

        other.users.delete(leaving[0], delete_workflows=True)

    assert {one.email for one in client.users.list()} == {"owner@example.com", "juliana@example.com"}
