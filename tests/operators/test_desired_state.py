"""Declared objects are created, changed and pruned by name; nothing else is touched, and a repeat changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureProjectsOperator,
    ServiceEnsureTagsOperator,
    ServiceEnsureVariablesOperator,
)
from tests.frames import showing

from .conftest import counts

SECRET = "secret-of-this-test"


def tags(client: Any) -> set[str]:
    return {tag.name for tag in client.tags.list()}


def variables(client: Any) -> dict[str, str]:
    return {one.key: one.value for one in client.variables.list() if one.project is None}


# ---------------------------------------------------------------- tags


def test_tags_are_made_once(execute, client, writes, link):
    client.tags.create("kept")
    writes()
    first = execute(ServiceEnsureTagsOperator, tags=["kept", " billing ", "new"])
    assert counts(first) == (2, 0, 0, 1)
    assert first["changes"] == [{"action": "create", "name": "billing"}, {"action": "create", "name": "new"}]
    assert writes() == ["POST /tags", "POST /tags"]
    again = execute(ServiceEnsureTagsOperator, tags=["kept", "billing", "new"])
    assert (counts(again), again["changes"], writes()) == ((0, 0, 0, 3), [], [])
    assert tags(client) == {"kept", "billing", "new"}
    assert link() == "/home/workflows"


def test_a_preview_changes_nothing(execute, client, writes, caplog):
    client.tags.create("old")
    writes()
    with caplog.at_level("INFO"):
        done = execute(ServiceEnsureTagsOperator, tags=["new"], prune=True, prune_names=["old"], preview=True)
    assert (counts(done), done["preview"], writes()) == ((1, 0, 1, 0), True, [])
    assert "would create 'new'" in caplog.text
    assert "would delete 'old'" in caplog.text
    assert tags(client) == {"old"}


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ({"prune_names": ["old", "absent"]}, {"new", "air-a", "air-b", "Old"}),
        ({"prune_prefix": "air-"}, {"new", "air-a", "old", "Old"}),
    ],
)
def test_only_what_is_named_is_pruned(execute, client, named, left):
    for name in ("air-a", "air-b", "old", "Old"):
        client.tags.create(name)
    desired = ["new", "air-a"]
    assert execute(ServiceEnsureTagsOperator, tags=desired, prune=True, **named)["deleted"] == 1
    assert tags(client) == left
    assert execute(ServiceEnsureTagsOperator, tags=desired, prune=True, **named)["changes"] == []


def test_the_tag_of_the_bridge_is_kept(execute, client):
    for name in ("airflow-bridge", "airflow-old"):
        client.tags.create(name)
    assert execute(ServiceEnsureTagsOperator, tags=["new"], prune=True, prune_prefix="airflow-")["deleted"] == 1
    assert tags(client) == {"new", "airflow-bridge"}


def test_an_object_deleted_in_the_meantime_is_no_error(execute, client, simulator):
    client.tags.create("old")
    simulator.inject("status", status=404, path="/tags/")
    assert execute(ServiceEnsureTagsOperator, tags=[], prune=True, prune_names=["old"])["deleted"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prune": True}, "prune=True needs prune_names or prune_prefix: nothing else is ever deleted"),
        ({"prune_prefix": "air-"}, "have no effect without prune=True"),
        ({"prune": True, "prune_names": "old"}, "prune_names must be a list, not str"),
        ({"prune": True, "prune_names": [""]}, "each of prune_names must be text that is not empty"),
        ({"prune": True, "prune_prefix": 1}, "prune_prefix must be text that is not empty, not 1"),
        ({"prune": True, "prune_names": ["new"]}, "prune_names holds 'new', which is declared as well"),
        ({"tags": ["a", "a "]}, "tags has 'a' more than once"),
        ({"tags": ["a", ""]}, "each name in tags must be text that is not empty"),
        ({"tags": ["x" * 25]}, "the name of a tag has at most 24 characters: 'xxx"),
        ({"tags": {"a": "b"}}, "tags must be a list, not dict"),
        ({"tags": "[new"}, "tags cannot be read as YAML or JSON: line 1, column 5: the syntax is wrong"),
        ({"tags": "# nothing"}, "tags is empty"),
        ({"tags": "a\x00b"}, "tags cannot be read as YAML or JSON: it has characters that text cannot have"),
    ],
)
def test_invalid_declarations_are_refused(execute, client, writes, arguments, message):
    with pytest.raises((AirflowFailException, ServiceInputError), match=message):
        execute(ServiceEnsureTagsOperator, **{"tags": ["new"], **arguments})
    assert writes() == []


@pytest.mark.parametrize(
    "arguments", [{"tags": ["a"], "path": "b.yaml"}, {"tags": ["a"], "prune_names": ["b"], "prune_prefix": "c"}]
)
def test_the_declaration_is_given_in_one_way(execute, simulator, arguments):
    with pytest.raises(ServiceInputError, match="give either"):
        ServiceEnsureTagsOperator(task_id="task")
    with pytest.raises(AirflowFailException, match="give either"):
        execute(ServiceEnsureTagsOperator, **arguments)
    assert not simulator.requests


def test_a_variable_created_in_the_meantime_gets_its_declared_value(execute, client, meanwhile):
    meanwhile("/variables", lambda other: other.variables.create("STAGE", "theirs"))
    execute(ServiceEnsureVariablesOperator, variables={"STAGE": "mine"})
    assert variables(client) == {"STAGE": "mine"}


def test_many_changes_are_truncated_in_the_result(execute, simulator):
    done = execute(ServiceEnsureTagsOperator, tags=[f"tag {number}" for number in range(201)])
    assert (done["created"], len(done["changes"]), done["more"]) == (201, 200, True)


# ---------------------------------------------------------------- variables


def test_variables_get_their_values(execute, client, writes, link):
    client.variables.create("stage", "test")
    client.variables.create("same", "1")
    client.variables.create("other", "x")
    writes()
    desired = {"stage": "production", "same": "1", "new": ""}
    done = execute(ServiceEnsureVariablesOperator, variables=desired)
    assert counts(done) == (1, 1, 0, 1)
    assert variables(client) == {**desired, "other": "x"}
    assert (len(writes()), link()) == (2, "/home/variables")
    assert (counts(execute(ServiceEnsureVariablesOperator, variables=desired)), writes()) == ((0, 0, 0, 3), [])


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("wrong", [{"bad-key": "x"}, {"k" * 51: "x"}, {"long": "x" * 1001}])
def test_keys_and_values_are_checked_before_anything_is_written(execute, simulator, preview, wrong):
    with pytest.raises(AirflowFailException, match="of a variable has"):
        execute(ServiceEnsureVariablesOperator, variables={"good": "x", **wrong}, preview=preview)
    assert not simulator.requests


def test_variables_of_a_project_are_others(execute, client):
    project = client.projects.create("Sales")
    client.variables.create("stage", "all")
    client.variables.create("old", "all")
    client.variables.create("old", "sales", project_id=project.id)
    done = execute(
        ServiceEnsureVariablesOperator,
        variables={"stage": "sales"},
        project_name="Sales",
        prune=True,
        prune_names=["old"],
    )
    assert counts(done) == (1, 0, 1, 0)
    assert variables(client) == {"stage": "all", "old": "all"}
    assert [(one.key, one.value) for one in client.variables.list(project_id=project.id) if one.project] == [
        ("stage", "sales")
    ]


@pytest.mark.parametrize("form", [dict, json.dumps, "token: {}".format])
def test_no_value_is_shown(execute, client, task_instance, caplog, form):
    desired = form(SECRET) if isinstance(form, type("".format)) else form({"token": SECRET})
    client.variables.create("token", "before")
    with caplog.at_level("DEBUG"):
        done = execute(ServiceEnsureVariablesOperator, variables=desired)
    assert variables(client) == {"token": SECRET}
    assert done["changes"] == [{"action": "update", "name": "token"}]
    assert SECRET not in caplog.text + json.dumps(done) + json.dumps(task_instance.pushed)


@pytest.mark.parametrize(
    ("desired", "message"),
    [
        (f"a: {SECRET}\nb: [", "variables cannot be read as YAML or JSON: line 2"),
        (f"a: {SECRET}\na: {SECRET}", "line 2, column 1: the key 'a' is there more than once"),
        (f'{{"a":\t"{SECRET}",\n\t"a": ""}}', "line 2, column 2: the key 'a' is there more than once"),
        (f"a: [{SECRET}]", "the value of variable 'a' must be text, not list; in YAML, put it in quotes"),
        ({"a": True}, "the value of variable 'a' must be text, not bool"),
        (f"- {SECRET}", "variables must be a mapping of names, not list"),
        ({"a b": SECRET}, "up to 49 letters, digits and underscores, not 'a b'"),
        ({"a": SECRET * 99}, "the value of a variable has at most 1000 characters: 'a'"),
    ],
)
def test_no_value_is_shown_by_a_refusal(execute, caplog, desired, message):
    with pytest.raises(AirflowFailException, match=message) as caught:
        execute(ServiceEnsureVariablesOperator, variables=desired)
    assert SECRET not in str(caught.value) + caplog.text
    assert showing(caught.value, SECRET) == []


def test_a_failure_in_the_middle_names_what_was_done(execute, simulator, client, caplog):
    simulator.inject("status", status=400, method="POST", path="/variables$", skip=1)
    with pytest.raises(AirflowFailException, match="POST /variables"):
        execute(ServiceEnsureVariablesOperator, variables={"first": "1", "second": "2", "third": "3"})
    assert "Change 2 of 3 failed; those before it were made, and a repeat makes the rest" in caplog.text
    assert variables(client) == {"first": "1"}
    desired = {"first": "1", "second": "2", "third": "3"}
    assert counts(execute(ServiceEnsureVariablesOperator, variables=desired)) == (2, 0, 0, 1)


def test_a_plan_that_needs_a_license_says_so(execute, simulator):
    simulator.state.licensed = False
    for operator, desired in (
        (ServiceEnsureVariablesOperator, {"variables": {"a": "b"}}),
        (ServiceEnsureProjectsOperator, {"projects": {"a": None}}),
    ):
        with pytest.raises(AirflowFailException, match="license"):
            execute(operator, **desired)
