"""Variables; the free edition refuses them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.client._models import NULL
from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceNotFoundError
from airflow_provider_service.client.models import Variable

from .expecting import NO_ID, refused, unique
from .target import Target


def named(service: Target, key: str) -> Variable:
    return next(variable for variable in service.client.variables.list() if variable.key == key)


@pytest.fixture
def variable(service: Target) -> Iterator[Variable]:
    key = unique("v")
    service.client.variables.create(key, "1")
    made = named(service, key)
    yield made
    service.raw("DELETE", f"/variables/{made.id}")


@pytest.mark.covers("create_variable", "list_variables")
def test_a_variable_is_made_and_listed(variable: Variable) -> None:
    assert (variable.value, variable.type, variable.project) == ("1", "string", None)


@pytest.mark.covers("list_variables", needs=("create_variable", "create_project"))
def test_variables_of_a_project_and_empty_ones(service: Target, variable: Variable) -> None:
    project = service.client.projects.create(unique())
    key = unique("v")
    service.client.variables.create(key, "", project_id=project.id)

    def keys(**options: str) -> list[str]:
        return [one.key for one in service.client.variables.list(**options)]  # type: ignore[arg-type]

    assert keys(project_id=project.id) == [key]
    assert keys(state="empty") == [key]
    assert named(service, key).project is not None
    service.client.projects.delete(project.id)


@pytest.mark.covers("update_variable", needs=("create_variable", "list_variables"))
def test_a_variable_is_changed(service: Target, variable: Variable) -> None:
    key = unique("v")

    service.client.variables.update(variable.id, key, "2", project_id=NULL)

    assert (named(service, key).id, named(service, key).value) == (variable.id, "2")


@pytest.mark.covers("delete_variable", needs=("create_variable", "list_variables"))
def test_a_deleted_variable_is_gone(service: Target, variable: Variable) -> None:
    service.client.variables.delete(variable.id)
    assert variable.id not in [one.id for one in service.client.variables.list()]


@pytest.mark.covers("create_variable", "update_variable")
def test_a_taken_key_is_refused(service: Target, variable: Variable) -> None:
    message = f'A global variable with key "{variable.key}" already exists'
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.variables.create(variable.key, "2")


@pytest.mark.parametrize("key", ["", "1a", "a-b", "a" * 51])
@pytest.mark.covers("create_variable")
def test_an_invalid_key_is_refused(service: Target, key: str) -> None:
    with pytest.raises(ServiceInvalidRequestError, match="request/body/key"):
        service.client.variables.create(key, "1")


@pytest.mark.covers("create_variable")
def test_a_value_is_not_longer_than_1000_characters(service: Target) -> None:
    with pytest.raises(ServiceInvalidRequestError, match="request/body/value"):
        service.client.variables.create(unique("v"), "x" * 1001)


@pytest.mark.covers("update_variable", "delete_variable")
def test_an_unknown_variable_is_not_found(service: Target) -> None:
    with refused(ServiceNotFoundError, f"Variable with id {NO_ID} not found"):
        service.client.variables.update(NO_ID, "k", "v")
    with refused(ServiceNotFoundError, f"Variable with id {NO_ID} not found"):
        service.client.variables.delete(NO_ID)
