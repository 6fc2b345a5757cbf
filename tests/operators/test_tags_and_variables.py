"""Operators on tags and variables."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.tags import ServiceCreateTagOperator
from airflow_provider_service.operators.variables import (
    ServiceCreateVariableOperator,
    ServiceDeleteVariableOperator,
    ServiceUpdateVariableOperator,
)


def test_creating_a_tag_twice(execute, client, link):
    first = execute(ServiceCreateTagOperator, name="billing")
    second = execute(ServiceCreateTagOperator, name=" billing ")
    assert (first["outcome"], second["outcome"], first["tag_id"]) == ("created", "skipped", second["tag_id"])
    assert [tag.name for tag in client.tags.list()] == ["billing"]
    assert link() == "/home/workflows"


def test_an_existing_tag_can_fail_the_task(execute, client):
    tag = client.tags.create("billing")
    with pytest.raises(AirflowFailException, match=f"tag 'billing' exists with id {tag.id}"):
        execute(ServiceCreateTagOperator, name="billing", if_exists="fail")


def test_an_invalid_name_of_a_tag(execute):
    with pytest.raises(AirflowFailException, match="it must have 1 to 24 characters"):
        execute(ServiceCreateTagOperator, name="x" * 25)


# ---------------------------------------------------------------- variables


def held(client) -> list[tuple[str, str, str | None]]:
    return [(one.key, one.value, one.project.id if one.project else None) for one in client.variables.list()]


def test_creating_a_variable_updates_the_one_that_exists(execute, client, writes, link):
    first = execute(ServiceCreateVariableOperator, key="STAGE", value="test")
    assert (first["outcome"], writes()) == ("created", ["POST /variables"])
    assert execute(ServiceCreateVariableOperator, key="STAGE", value="test")["outcome"] == "unchanged"
    assert writes() == []
    updated = execute(ServiceCreateVariableOperator, key="STAGE", value="live")
    assert (updated["outcome"], updated["variable_id"]) == ("updated", first["variable_id"])
    assert held(client) == [("STAGE", "live", None)]
    assert link() == "/home/variables"


def test_an_existing_variable_can_be_left_or_fail(execute, client):
    execute(ServiceCreateVariableOperator, key="STAGE", value="test")
    skipped = execute(ServiceCreateVariableOperator, key="STAGE", value="live", if_exists="skip")
    assert skipped["outcome"] == "skipped"
    with pytest.raises(AirflowFailException, match=f"variable 'STAGE' exists with id {skipped['variable_id']}"):
        execute(ServiceCreateVariableOperator, key="STAGE", value="live", if_exists="fail")
    assert held(client) == [("STAGE", "test", None)]


@pytest.mark.parametrize(
    ("if_exists", "outcome", "value"), [("update", "updated", "mine"), ("skip", "skipped", "theirs")]
)
def test_a_variable_that_somebody_creates_at_the_same_time_is_the_one_that_exists(
    execute, client, meanwhile, if_exists, outcome, value
):
    meanwhile("/variables", lambda other: other.variables.create("STAGE", "theirs"))
    done = execute(ServiceCreateVariableOperator, key="STAGE", value="mine", if_exists=if_exists)
    assert (done["outcome"], held(client)) == (outcome, [("STAGE", value, None)])


def test_a_key_of_a_project_is_another_variable(execute, client):
    project = client.projects.create("Analytics").id
    execute(ServiceCreateVariableOperator, key="STAGE", value="all")
    assert execute(ServiceCreateVariableOperator, key="STAGE", value="one", project_id=project)["outcome"] == "created"
    execute(ServiceUpdateVariableOperator, key="STAGE", value="two", project_id=project)
    assert sorted(held(client), key=lambda one: one[1]) == [("STAGE", "all", None), ("STAGE", "two", project)]
    execute(ServiceDeleteVariableOperator, key="STAGE")
    assert held(client) == [("STAGE", "two", project)]


def test_updating_needs_a_variable(execute, client, writes):
    with pytest.raises(AirflowFailException, match="there is no variable of the whole instance named 'STAGE'"):
        execute(ServiceUpdateVariableOperator, key="STAGE", value="live")
    client.variables.create("STAGE", "test")
    outcomes = [execute(ServiceUpdateVariableOperator, key="STAGE", value="live")["outcome"] for _ in range(2)]
    assert (outcomes, held(client)) == (["updated", "unchanged"], [("STAGE", "live", None)])


def test_deleting_a_variable_twice(execute, client):
    client.variables.create("STAGE", "test")
    outcomes = [execute(ServiceDeleteVariableOperator, key="STAGE")["outcome"] for _ in range(2)]
    assert (outcomes, held(client)) == (["deleted", "missing"], [])
    with pytest.raises(AirflowFailException, match="there is no variable"):
        execute(ServiceDeleteVariableOperator, key="STAGE", if_missing="fail")


def test_deleting_survives_a_lost_answer(execute, client, simulator):
    client.variables.create("STAGE", "test")
    simulator.inject("drop", method="DELETE", after_processing=True)
    assert execute(ServiceDeleteVariableOperator, key="STAGE")["outcome"] == "deleted"
    assert held(client) == []


def test_a_malformed_key_is_refused_by_the_service(execute):
    with pytest.raises(AirflowFailException):
        execute(ServiceCreateVariableOperator, key="not a key", value="x")
