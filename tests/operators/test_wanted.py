"""What is wanted is made, changed and pruned by name; nothing else is touched, and a repeat changes nothing."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.lookup import get_data_table, get_project
from airflow_provider_service.operators.wanted import (
    ServiceEnsureDataTablesOperator,
    ServiceEnsureProjectsOperator,
    ServiceEnsureTagsOperator,
    ServiceEnsureVariablesOperator,
)
from tests.frames import showing

SECRET = "secret-of-this-test"
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in pairwise("abcdefghi")
)
MERGED_LAUGHS = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n" for before, name in pairwise("abcdefghi")
)


def counts(done: dict[str, Any]) -> tuple[int, ...]:
    return tuple(done[name] for name in ("created", "updated", "deleted", "unchanged"))


def tags(client: Any) -> set[str]:
    return {tag.name for tag in client.tags.list()}


def variables(client: Any) -> dict[str, str]:
    return {one.key: one.value for one in client.variables.list() if one.project is None}


def members(client: Any, name: str) -> dict[str, str]:
    return {one.email: one.role for one in client.projects.list_users(get_project(client, name).id)}


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
    wanted = ["new", "air-a"]
    assert execute(ServiceEnsureTagsOperator, tags=wanted, prune=True, **named)["deleted"] == 1
    assert tags(client) == left
    assert execute(ServiceEnsureTagsOperator, tags=wanted, prune=True, **named)["changes"] == []


def test_what_is_deleted_in_the_meantime_is_no_error(execute, client, simulator):
    client.tags.create("old")
    simulator.inject("status", status=404, path="/tags/")
    assert execute(ServiceEnsureTagsOperator, tags=[], prune=True, prune_names=["old"])["deleted"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prune": True}, "prune=True needs prune_names or prune_prefix: nothing else is ever deleted"),
        ({"prune_prefix": "air-"}, "mean nothing without prune=True"),
        ({"prune": True, "prune_names": "old"}, "prune_names must be a list, not str"),
        ({"prune": True, "prune_names": [""]}, "each of prune_names must be text that is not empty"),
        ({"prune": True, "prune_prefix": 1}, "prune_prefix must be text that is not empty, not 1"),
        ({"prune": True, "prune_names": ["new"]}, "prune_names holds 'new', which is wanted as well"),
        ({"tags": ["a", "a "]}, "tags has 'a' more than once"),
        ({"tags": ["a", ""]}, "each name in tags must be text that is not empty"),
        ({"tags": ["x" * 25]}, "the name of a tag has at most 24 characters: 'xxx"),
        ({"tags": {"a": "b"}}, "tags must be a list, not dict"),
        ({"tags": "[new"}, "tags cannot be read as YAML or JSON: line 1, column 5: the syntax is wrong"),
        ({"tags": "# nothing"}, "tags is empty"),
        ({"tags": "a\x00b"}, "tags cannot be read as YAML or JSON: it has characters that text cannot have"),
    ],
)
def test_what_cannot_be_meant_is_refused(execute, client, writes, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceEnsureTagsOperator, **{"tags": ["new"], **arguments})
    assert writes() == []


@pytest.mark.parametrize(
    "arguments", [{"tags": ["a"], "path": "b.yaml"}, {"tags": ["a"], "prune_names": ["b"], "prune_prefix": "c"}]
)
def test_what_is_wanted_is_named_once(execute, simulator, arguments):
    with pytest.raises(ServiceInputError, match="give either"):
        ServiceEnsureTagsOperator(task_id="task")
    with pytest.raises(AirflowFailException, match="give either"):
        execute(ServiceEnsureTagsOperator, **arguments)
    assert not simulator.requests


@pytest.mark.parametrize("text", ["- a\n- b # more\n", '\t["a", "b"]', "[a, b]"])
def test_yaml_and_json_as_text_or_file(execute, client, tmp_path, text):
    assert execute(ServiceEnsureTagsOperator, tags=text)["created"] == 2
    for name in ("wanted.yaml", "wanted.json"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8-sig")
        for address in (str(path), f"file://{path}"):
            assert execute(ServiceEnsureTagsOperator, path=address)["unchanged"] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff", "is not UTF-8 text"),
        (b"- [", "cannot be read as YAML or JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(execute, tmp_path, content, message):
    path = tmp_path / "wanted.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AirflowFailException, match=f"the file '{path}' {message}"):
        execute(ServiceEnsureTagsOperator, path=str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(LAUGHS, "line 1, column [0-9]+: its aliases repeat more than 100,000 values", id="aliases"),
        pytest.param(MERGED_LAUGHS, "its aliases repeat more than 100,000 values", id="merges"),
        pytest.param("&a [*a]", "line 1, column 1: nested more than 50 levels deep", id="alias of itself"),
        pytest.param("a: 1\nb: &b {<<: *b}", "line 2, column 4: nested more than 50", id="merge of itself"),
        pytest.param("&a {? *a : 1}", "line 1, column 1: a list or a mapping cannot be a key", id="key of itself"),
        pytest.param("a: 1\n? [b]\n: 1", "line 2, column 3: a list or a mapping cannot be a key", id="list as key"),
        pytest.param("a: 1\nb: " + "[" * 60 + "]" * 60, "line 2, column 53: nested more", id="deep"),
        pytest.param("\n" + "[" * 9000 + "]" * 9000, "line 2, column [0-9]+: nested more", id="very deep"),
        pytest.param('{"a":\n\t' + "[" * 9000 + "]" * 9000 + "}", "line 2, column [0-9]+: nested", id="deep JSON"),
        pytest.param("a: 1\nb: " + "9" * 5000, "line 2, column 4: this value does not fit its type", id="long number"),
        pytest.param(f"a: 1\nb: !!int {SECRET}", "line 2, column 4: this value does not fit", id="no number"),
        pytest.param(f"a: 1\nb: !!float {SECRET}", "line 2, column 4: this value does not fit", id="no float"),
        pytest.param(f"a: 1\nb: !!bool {SECRET}", "line 2, column 4: this value does not fit", id="no truth value"),
        pytest.param("a: 1\nb: !!int ''", "line 2, column 4: this value does not fit", id="nothing as a number"),
        pytest.param(f"a: 1\nb: !!timestamp {SECRET}", "line 2, column 4: this value does not fit", id="no date"),
        pytest.param("a: 1\nb: 2024-02-31", "line 2, column 4: this value does not fit", id="no such date"),
        pytest.param(f"a: 1\nb: !{SECRET} c", "line 2, column 4: the syntax is wrong", id="unknown type"),
        pytest.param("a: 1\nb: !!set {c}", "line 2, column 4: the syntax is wrong", id="set"),
        pytest.param(f"a: *{SECRET}", "line 1, column 4: the syntax is wrong", id="unknown alias"),
    ],
)
def test_hostile_text_is_refused_with_its_line_and_without_its_values(execute, tmp_path, text, message):
    path = tmp_path / "wanted.yaml"
    path.write_text(text)
    with pytest.raises(AirflowFailException, match=f"the file '{path}' cannot be read as YAML or JSON: ") as caught:
        execute(ServiceEnsureVariablesOperator, path=str(path))
    assert re.search(message, str(caught.value))
    assert SECRET not in str(caught.value)
    assert showing(caught.value, SECRET) == []


def test_anchors_and_merged_keys_are_usual(execute, client):
    text = "orders:\n  <<: &base {sku: string}\n  price: number\ncopy: &copy {<<: *base, day: date}\nlast: {<<: *copy}"
    execute(ServiceEnsureDataTablesOperator, data_tables=text)
    names = {name: {one.name for one in get_data_table(client, name).columns} for name in ("orders", "copy", "last")}
    assert names == {"orders": {"sku", "price"}, "copy": {"sku", "day"}, "last": {"sku", "day"}}


# ---------------------------------------------------------------- variables


def test_variables_get_their_values(execute, client, writes, link):
    client.variables.create("stage", "test")
    client.variables.create("same", "1")
    client.variables.create("other", "x")
    writes()
    wanted = {"stage": "production", "same": "1", "new": ""}
    done = execute(ServiceEnsureVariablesOperator, variables=wanted)
    assert counts(done) == (1, 1, 0, 1)
    assert variables(client) == {**wanted, "other": "x"}
    assert (len(writes()), link()) == (2, "/home/variables")
    assert (counts(execute(ServiceEnsureVariablesOperator, variables=wanted)), writes()) == ((0, 0, 0, 3), [])


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
    wanted = form(SECRET) if isinstance(form, type("".format)) else form({"token": SECRET})
    client.variables.create("token", "before")
    with caplog.at_level("DEBUG"):
        done = execute(ServiceEnsureVariablesOperator, variables=wanted)
    assert variables(client) == {"token": SECRET}
    assert done["changes"] == [{"action": "update", "name": "token"}]
    assert SECRET not in caplog.text + json.dumps(done) + json.dumps(task_instance.pushed)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (f"a: {SECRET}\nb: [", "variables cannot be read as YAML or JSON: line 2"),
        (f"a: {SECRET}\na: {SECRET}", "line 2, column 1: the key 'a' is there more than once"),
        (f'{{"a":\t"{SECRET}",\n\t"a": ""}}', "line 2, column 2: the key 'a' is there more than once"),
        (f"a: [{SECRET}]", "the value of variable 'a' must be text, not list; in YAML, put it in quotes"),
        ({"a": True}, "the value of variable 'a' must be text, not bool"),
        (f"- {SECRET}", "variables must be a mapping of names, not list"),
        ({"a b": SECRET}, "request/body/key"),
    ],
)
def test_no_value_is_shown_by_a_refusal(execute, caplog, wanted, message):
    with pytest.raises(AirflowFailException, match=message) as caught:
        execute(ServiceEnsureVariablesOperator, variables=wanted)
    assert SECRET not in str(caught.value) + caplog.text
    assert showing(caught.value, SECRET) == []


def test_a_failure_in_the_middle_says_how_far_it_came(execute, simulator, client, caplog):
    with pytest.raises(AirflowFailException, match="request/body/key"):
        execute(ServiceEnsureVariablesOperator, variables={"first": "1", "not allowed": "2", "third": "3"})
    assert "Change 2 of 3 failed; those before it were made, and a repeat makes the rest" in caplog.text
    assert variables(client) == {"first": "1"}
    wanted = {"first": "1", "second": "2", "third": "3"}
    assert counts(execute(ServiceEnsureVariablesOperator, variables=wanted)) == (2, 0, 0, 1)


# ---------------------------------------------------------------- data tables


def test_tables_get_their_columns(execute, client, writes, link):
    table = client.data_tables.create("orders", [{"name": "sku", "type": "string"}, {"name": "own", "type": "date"}])
    client.data_table_rows.insert(table.id, [{"sku": "a"}])
    writes()
    wanted = {"orders": {"sku": "string", "stock": "number"}, "stock": [{"name": "sku", "type": "string"}]}
    done = execute(ServiceEnsureDataTablesOperator, data_tables=wanted)
    assert counts(done) == (1, 1, 0, 0)
    assert done["changes"] == [
        {"action": "update", "name": "orders", "added_columns": {"stock": "number"}},
        {"action": "create", "name": "stock", "columns": {"sku": "string"}},
    ]
    held = {one.name: one.type for one in client.data_table_columns.list(table.id)}
    assert held == {"sku": "string", "own": "date", "stock": "number"}
    assert [row["sku"] for row in client.data_table_rows.list(table.id)] == ["a"]
    writes()
    assert (counts(execute(ServiceEnsureDataTablesOperator, data_tables=wanted)), writes()) == ((0, 0, 0, 2), [])
    assert link() == "/home/datatables"


def test_tables_that_cannot_be_so_are_all_named_before_anything_is_written(execute, client, writes):
    for name in ("one", "two"):
        client.data_tables.create(name, [{"name": "sku", "type": "string"}])
    writes()
    wanted = {"new": {"a": "string"}, "one": {"sku": "number"}, "two": {"sku": "date"}}
    with pytest.raises(AirflowFailException, match=r"data table 'one' .*'sku' is string, not number.*data table 'two'"):
        execute(ServiceEnsureDataTablesOperator, data_tables=wanted)
    assert writes() == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sku": "text"}, "the type of column 'sku' must be one of string, number, boolean, date"),
        ({"createdAt": "date"}, "'createdAt' cannot be the name of a column"),
        ({"a": "string", "A": "string"}, "each name once, regardless of case"),
    ],
)
def test_columns_that_cannot_be_are_refused(execute, simulator, columns, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceEnsureDataTablesOperator, data_tables={"orders": columns})
    assert not simulator.requests


def test_tables_are_pruned_in_their_project(execute, client):
    project = client.projects.create("Sales")
    for project_id in (None, project.id):
        for name in ("old", "kept"):
            client.data_tables.create(name, [], project_id=project_id)
    done = execute(
        ServiceEnsureDataTablesOperator, data_tables={}, project_name="Sales", prune=True, prune_names=["old"]
    )
    assert counts(done) == (0, 0, 1, 0)
    assert sorted(one.name for one in client.data_tables.list()) == ["kept", "kept", "old"]
    assert get_data_table(client, "kept", project_id=project.id)
    with pytest.raises(AirflowFailException, match="there is more than one data table named 'kept'"):
        execute(ServiceEnsureDataTablesOperator, data_tables={"kept": {}})


# ---------------------------------------------------------------- projects


@pytest.fixture
def people(simulator):
    for name in ("ana", "bob", "eve"):
        simulator.state.add_user(f"{name}@example.com")


@pytest.mark.usefixtures("people")
def test_projects_get_their_members(execute, client, writes):
    wanted = {"Sales": {"ana@example.com": "project:editor"}, "Empty": None}
    first = execute(ServiceEnsureProjectsOperator, projects=wanted)
    assert counts(first) == (2, 0, 0, 0)
    assert members(client, "Sales").items() >= {"ana@example.com": "project:editor"}.items()
    again = execute(ServiceEnsureProjectsOperator, projects=wanted)
    assert counts(again) == (0, 0, 0, 2)

    project = get_project(client, "Sales").id
    users = {one.email: one.id for one in client.users.list()}
    client.projects.add_users(project, [{"userId": users["eve@example.com"], "role": "project:viewer"}])
    before = members(client, "Sales")
    writes()
    changed = {"Sales": {"Ana@Example.com": "project:viewer", "bob@example.com": "project:editor"}}
    done = execute(ServiceEnsureProjectsOperator, projects=changed)
    assert done["changes"] == [
        {
            "action": "update",
            "name": "Sales",
            "added_members": {"bob@example.com": "project:editor"},
            "changed_members": {"ana@example.com": "project:viewer"},
        }
    ]
    assert members(client, "Sales") == before | {
        "ana@example.com": "project:viewer",
        "bob@example.com": "project:editor",
    }
    execute(ServiceEnsureProjectsOperator, projects="Sales: {ana@example.com: null, nobody@example.com: null}")
    assert members(client, "Sales").keys() == before.keys() - {"ana@example.com"} | {"bob@example.com"}


@pytest.mark.usefixtures("people")
def test_a_creation_that_was_cut_off_is_completed(execute, client, simulator):
    wanted = {"Sales": {"ana@example.com": "project:editor"}}
    simulator.inject("status", status=400, path="/users$", method="POST")
    with pytest.raises(AirflowFailException):
        execute(ServiceEnsureProjectsOperator, projects=wanted)
    assert "ana@example.com" not in members(client, "Sales")
    assert counts(execute(ServiceEnsureProjectsOperator, projects=wanted)) == (0, 1, 0, 0)
    assert "ana@example.com" in members(client, "Sales")


@pytest.mark.parametrize(
    ("projects", "message"),
    [
        ({"New": {"no@example.com": "project:editor"}}, "there is no user with the email address no@example.com"),
        ({"New": {"ana@example.com": 1}}, "the role of ana@example.com in project 'New' must be text such as"),
        ({"New": ["ana@example.com"]}, "the members of project 'New' must be a mapping of names, not list"),
        (["New"], "projects must be a mapping of names, not list"),
    ],
)
@pytest.mark.usefixtures("people")
def test_members_that_cannot_be_are_refused(execute, writes, projects, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceEnsureProjectsOperator, projects=projects)
    assert writes() == []


def test_personal_projects_are_left_alone(execute, client, writes):
    personal = next(one.name for one in client.projects.list() if one.type == "personal")
    with pytest.raises(AirflowFailException, match="is a personal project, whose members cannot be changed"):
        execute(ServiceEnsureProjectsOperator, projects={personal: None})
    assert counts(execute(ServiceEnsureProjectsOperator, projects={}, prune=True, prune_names=[personal]))[2] == 0
    assert writes() == []


def test_a_project_that_holds_something_is_not_deleted(execute, client, writes):
    for name in ("Empty", "Full", "Tables"):
        client.projects.create(name)
    workflow = client.workflows.create("w", [], {}, {})
    client.workflows.transfer(workflow.id, get_project(client, "Full").id)
    client.data_tables.create("t", [], project_id=get_project(client, "Tables").id)
    writes()
    prune = {"projects": {}, "prune": True}
    with pytest.raises(AirflowFailException, match="the projects 'Full', 'Tables' hold workflows or data tables"):
        execute(ServiceEnsureProjectsOperator, **prune, prune_names=["Empty", "Full", "Tables"])
    assert writes() == []
    assert execute(ServiceEnsureProjectsOperator, **prune, prune_prefix="Emp")["deleted"] == 1
    assert {one.name for one in client.projects.list() if one.type == "team"} == {"Full", "Tables"}


def test_a_plan_that_needs_a_license_says_so(execute, simulator):
    simulator.state.licensed = False
    for operator, wanted in (
        (ServiceEnsureVariablesOperator, {"variables": {"a": "b"}}),
        (ServiceEnsureProjectsOperator, {"projects": {"a": None}}),
    ):
        with pytest.raises(AirflowFailException, match="license"):
            execute(operator, **wanted)


def test_many_changes_are_cut_in_the_result(execute, simulator):
    done = execute(ServiceEnsureTagsOperator, tags=[f"tag {number}" for number in range(201)])
    assert (done["created"], len(done["changes"]), done["more"]) == (201, 200, True)
