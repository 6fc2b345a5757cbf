"""Every operator takes every object by its id or by its name, and all look names up by the same rule."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.references import Alternatives
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._lookup import get_data_table
from airflow_provider_service.client.errors import ServiceInputError, ServiceLookupError
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.workflows import (
    ServiceArchiveWorkflowOperator,
    ServiceDeactivateWorkflowOperator,
    ServiceTransferWorkflowOperator,
    ServiceUnarchiveWorkflowOperator,
)
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import webhook_workflow

from .test_every_operator import OPERATORS

NAME = "Nightly sync"
FILTER = {"filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]}
SECRET = {"name": "X-Key", "value": "v"}

_FOLDER = TemporaryDirectory()
FOLDER = Path(_FOLDER.name)
DATABASE = FOLDER / "shop.sqlite"

#: What an operator needs beside the object. Values that begin with "the " stand for an object that is created.
FURTHER: dict[str, dict[str, Any]] = {
    "ServiceCreateCredentialOperator": {"name": "c", "credential_type": "httpHeaderAuth", "data": SECRET},
    "ServiceCreateDataTableOperator": {"name": "t", "columns": {"sku": "string"}},
    "ServiceCreateOrUpdateWorkflowOperator": {"definition": webhook_workflow("w", "w", "immediate")},
    "ServiceCreateVariableOperator": {"key": "CREATED", "value": "1"},
    "ObjectStorageToServiceDataTableOperator": {"path": str(FOLDER / "given.jsonl"), "mode": "append"},
    "ServiceDataTableToObjectStorageOperator": {"path": str(FOLDER / "written.jsonl")},
    "ServiceDataTableToSqlOperator": {"sql_conn_id": "shop", "sql_table": "stock", "mode": "append"},
    "ServiceDeployWorkflowsOperator": {"source": [webhook_workflow("w", "w", "immediate")]},
    "ServiceEnsureDataTablesOperator": {"data_tables": {"t": {"sku": "string"}}},
    "ServiceEnsureVariablesOperator": {"variables": {"STAGE": "2"}},
    "ServiceExportWorkflowsOperator": {"path": str(FOLDER / "workflows")},
    "ServicePromoteWorkflowsOperator": {"source_conn_id": "service_default", "workflow_names": [NAME]},
    "SqlToServiceDataTableOperator": {"sql": "SELECT 'a' AS sku", "sql_conn_id": "shop", "mode": "append"},
    "ServiceDeleteRowsOperator": {"filter": FILTER},
    "ServiceDeleteVariableOperator": {"if_missing": "fail"},
    "ServiceInsertRowsOperator": {"rows": [{"sku": "a"}]},
    "ServiceRunWorkflowOperator": {"activate": True, "wait_for_completion": False, "poll_interval": 0.1},
    "ServiceSetWorkflowTagsOperator": {"tags": []},
    "ServiceUpdateCredentialOperator": {"data": SECRET},
    "ServiceUpdateRowsOperator": {"filter": FILTER, "data": {"sku": "b"}},
    "ServiceUpdateVariableOperator": {"value": "2"},
    "ServiceWorkflowHealthCheckOperator": {"on_breach": "report"},
    "ServiceUpsertRowsOperator": {"rows": [{"sku": "a"}], "key_columns": "sku"},
}
#: An object that an operator acts on, if the reference that is tested is another one, such as its project.
ACTS_ON = ("workflow_id", "data_table_id", "variable_id", "credential_id", "destination_project_id")
KINDS = {
    "workflow_id": "workflow",
    "data_table_id": "data table",
    "credential_id": "credential",
    "variable_id": "variable",
    "project_id": "project",
    "destination_project_id": "project",
    "parent_folder_id": "folder",
    "tag_id": "tag",
}

#: Kinds of which no two objects can have the same name.
UNIQUE = ("tag", "variable")

REFERENCES = [
    (operator, reference) for operator in OPERATORS for reference in operator.references if reference.id_field in KINDS
]


def each_of(references: list[Any]) -> Any:
    def label(one: Any) -> str:
        return one.name_field if isinstance(one, Alternatives) else one.__name__

    return pytest.mark.parametrize(("operator", "reference"), references, ids=label)


every_reference = each_of(REFERENCES)
#: Tested in tests/instances.
BETWEEN_INSTANCES = ("ServicePromoteWorkflowsOperator",)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read and written outside the service: a database and files."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "sqlite", "host": str(DATABASE)}))
    (FOLDER / "given.jsonl").write_text('{"sku": "a"}\n')
    with closing(sqlite3.connect(DATABASE)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS stock (sku TEXT)")


class World:
    """Creates objects, and counts them so that paths of webhooks differ."""

    def __init__(self, simulator: ServiceSimulator, client: ServiceClient) -> None:
        self.client, self.project = client, client.projects.create("Sales")
        self._simulator, self._number = simulator, 0

    def create(self, kind: str, name: str, project_id: str | None = None) -> str:
        """Create an object of a kind in a project, and return its id."""
        self._number += 1
        makers: dict[str, Callable[[], str]] = {
            "workflow": lambda: self._workflow(name, project_id),
            "data table": lambda: self._table(name, project_id),
            "credential": lambda: (
                self.client.credentials.create(name, "httpHeaderAuth", SECRET, project_id=project_id).id
            ),
            "variable": lambda: self._variable(name, project_id),
            "project": lambda: self.client.projects.create(name).id,
            "tag": lambda: self._tag(name),
            "folder": lambda: self.client.folders.create(self.project.id, name).id,
        }
        return makers[kind]()

    def _workflow(self, name: str, project_id: str | None) -> str:
        workflow = self._simulator.create_webhook_workflow(name, path=f"path{self._number}", active=False)
        if project_id is not None:
            self.client.workflows.transfer(workflow["id"], project_id)
        return str(workflow["id"])

    def _table(self, name: str, project_id: str | None) -> str:
        columns = [{"name": "sku", "type": "string"}]
        return self.client.data_tables.create(name, columns, project_id=project_id).id

    def _tag(self, name: str) -> str:
        tag_id = self.client.tags.create(name).id
        self.client.workflows.update_tags(self._workflow("tagged", None), [tag_id])
        return tag_id

    def _variable(self, name: str, project_id: str | None) -> str:
        self.client.variables.create(name, "1", project_id=project_id)
        return next(one.id for one in self.client.variables.list(project_id=project_id) if one.key == name)


@pytest.fixture
def world(simulator: ServiceSimulator, client: ServiceClient) -> World:
    return World(simulator, client)


def name_for(kind: str) -> str:
    """A name that the service accepts for a kind."""
    return NAME.replace(" ", "_") if kind == "variable" else NAME


def further(operator: type[ServiceBaseOperator], reference: Alternatives, world: World) -> dict[str, Any]:
    """The arguments that a task needs beside those of a reference."""
    arguments = dict(FURTHER.get(operator.__name__, {}))
    for other in operator.references:
        if other != reference and other.id_field in ACTS_ON and not other.is_optional:
            # An object in the project that is tested, or anywhere.
            arguments[other.id_field] = world.create(KINDS[other.id_field], "beside")
        if other != reference and other.id_field == "tag_ids":
            arguments["tags"] = []
    if reference.id_field == "project_id":
        arguments = by_name_in_the_project(operator, arguments)
    if reference.id_field == "parent_folder_id":
        arguments["project_id"] = world.project.id
    return arguments


def by_name_in_the_project(operator: type[ServiceBaseOperator], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with the object that the operator acts on given by its name, which a project narrows."""
    for other in operator.references:
        if other.id_field in ("workflow_id", "data_table_id", "credential_id") and "definition" not in arguments:
            arguments.pop(other.id_field, None)
            arguments[other.name_field] = NAME
        if other.id_field == "variable_id":
            arguments.pop("variable_id", None)
            arguments["key"] = "STAGE"
    return arguments


def sent(simulator: ServiceSimulator) -> Iterator[str]:
    """What was asked of the service, one text per request, without look-ups of the whole list."""
    for one in simulator.requests:
        yield f"{one.method} {one.path} {unquote(one.query)} {json.dumps(one.body)}"


def test_no_operator_has_an_id_without_a_name():
    pairs = {pair.fields for operator in OPERATORS for pair in operator.references}
    ids = {pair[0] for pair in pairs} | {"tag_ids", "execution_id", "version_id"}
    for operator in OPERATORS:
        unpaired = {one for one in operator.template_fields if one.endswith("_id")} - ids
        assert all(one.endswith("_conn_id") for one in unpaired), operator.__name__
        for pair in operator.references:
            assert set(pair.fields) <= set(operator.template_fields)


@every_reference
def test_id_and_name_together_are_refused_when_the_dag_file_is_read(operator, reference):
    arguments = dict.fromkeys(reference.fields, "x")
    others = {one.id_field: "x" for one in operator.references if one != reference}
    further_arguments = FURTHER.get(operator.__name__, {})
    message = f"^give either {reference.id_field} or {reference.name_field}, not {' and '.join(reference.fields)}$"
    with pytest.raises(ServiceInputError, match=message):
        operator(task_id="task", **{**further_arguments, **others, **arguments})


@each_of([(operator, one) for operator, one in REFERENCES if not one.is_optional])
def test_neither_is_refused_when_the_dag_file_is_read(operator, reference):
    others = {one.id_field: "x" for one in operator.references if one != reference}
    message = f"^give either {reference.id_field} or {reference.name_field}$"
    with pytest.raises(ServiceInputError, match=message):
        operator(task_id="task", **{**FURTHER.get(operator.__name__, {}), **others})


@every_reference
def test_templates_that_turn_out_to_be_both_are_refused_when_the_task_runs(execute, simulator, operator, reference):
    given = dict.fromkeys(reference.fields, "{{ 1 }}")
    others = {one.id_field: "x" for one in operator.references if one != reference}
    with pytest.raises(AirflowFailException, match=f"^give either {reference.id_field} or {reference.name_field}, not"):
        execute(operator, **{**FURTHER.get(operator.__name__, {}), **others, **given})
    assert not simulator.requests


def contents_of(world: World, project_id: str) -> list[str]:
    """Create what an operator may look for in a project, each beside a namesake outside it; return the ids."""
    kinds = {"workflow": NAME, "data table": NAME, "credential": NAME, "variable": "STAGE"}
    for kind, name in kinds.items():
        world.create(kind, name)
    return [world.create(kind, name, project_id) for kind, name in kinds.items()]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("by", ["id", "name"])
@each_of([one for one in REFERENCES if one[0].__name__ not in BETWEEN_INSTANCES])
def test_it_acts_on_the_object_of_the_id_or_name(execute, simulator, world, operator, reference, by):
    kind = KINDS[reference.id_field]
    name = name_for(kind)
    object_id = world.create(kind, name)
    proofs = [object_id, *(contents_of(world, object_id) if reference.id_field == "project_id" else ())]
    if kind == "tag":
        proofs.append(f"tags={name}")  # the service selects workflows by the names of tags
    arguments = further(operator, reference, world)
    arguments[reference.id_field if by == "id" else reference.name_field] = object_id if by == "id" else name
    simulator.clear_requests()

    execute(operator, **arguments)

    requests = list(sent(simulator))
    assert any(proof in one for one in requests for proof in proofs), requests


@pytest.mark.slow(one_in=5)
@each_of([(operator, one) for operator, one in REFERENCES if KINDS[one.id_field] not in UNIQUE])
def test_an_ambiguous_name_lists_the_candidates_with_their_projects(execute, simulator, world, operator, reference):
    kind = KINDS[reference.id_field]
    twins = [world.create(kind, NAME), world.create(kind, NAME, world.project.id)]
    arguments = {**further(operator, reference, world), reference.name_field: NAME}
    simulator.clear_requests()

    with pytest.raises(
        AirflowFailException, match=rf"^there is more than one {kind}\b.* named 'Nightly sync': ids "
    ) as caught:
        execute(operator, **arguments)

    assert all(one in str(caught.value) for one in twins)
    if kind not in ("project", "folder"):
        assert f"{twins[1]} (project 'Sales', {world.project.id})" in str(caught.value)
    assert {one.method for one in simulator.requests} == {"GET"}


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("difference", ["case", "blanks", "nothing alike"])
@every_reference
def test_an_unknown_name_is_an_error_that_names_what_was_probably_meant(
    execute, simulator, world, operator, reference, difference
):
    kind = KINDS[reference.id_field]
    name = name_for(kind)
    world.create(kind, name)
    wrong = {"case": name.upper(), "blanks": f" {name}", "nothing alike": "Other"}[difference]
    arguments = {**further(operator, reference, world), reference.name_field: wrong}
    simulator.clear_requests()

    with pytest.raises(AirflowFailException, match=rf"^there is no {kind}\b") as caught:
        execute(operator, **arguments)

    assert f"named {wrong!r} at {simulator.base_url}, or this key may not see it" in str(caught.value)
    hint = f"{name!r} differs only in upper and lower case or in blanks"
    assert (hint in str(caught.value)) == (difference != "nothing alike")
    assert {one.method for one in simulator.requests} == {"GET"}


def test_an_archived_workflow_does_not_count(execute, client, world):
    archived = world.create("workflow", NAME)
    client.workflows.archive(archived)
    with pytest.raises(AirflowFailException, match="there is no workflow named 'Nightly sync'"):
        execute(ServiceDeactivateWorkflowOperator, workflow_name=NAME)
    live = world.create("workflow", NAME)
    assert execute(ServiceDeactivateWorkflowOperator, workflow_name=NAME)["workflow_id"] == live


def test_archiving_and_unarchiving_by_name_are_idempotent(execute, client, simulator, world):
    old = world.create("workflow", NAME)
    client.workflows.archive(old)
    simulator.clock.advance(60)
    workflow_id = world.create("workflow", NAME)
    for _ in range(2):
        done = execute(ServiceArchiveWorkflowOperator, workflow_name=NAME)
        assert (done["workflow_id"], done["archived"]) == (workflow_id, True)
    with pytest.raises(AirflowFailException, match="there is more than one workflow named 'Nightly sync'"):
        execute(ServiceUnarchiveWorkflowOperator, workflow_name=NAME)
    client.workflows.delete(old)
    for _ in range(2):
        done = execute(ServiceUnarchiveWorkflowOperator, workflow_name=NAME)
        assert (done["workflow_id"], done["archived"]) == (workflow_id, False)


def test_moving_by_name_out_of_a_project_is_idempotent(execute, client, world):
    there = client.projects.create("There").id
    workflow_id = world.create("workflow", NAME, world.project.id)
    for moved in (True, False):
        done = execute(
            ServiceTransferWorkflowOperator,
            workflow_name=NAME,
            project_name="Sales",
            destination_project_name="There",
        )
        assert (done["workflow_id"], done["project_id"], done["moved"]) == (workflow_id, there, moved)


def test_renaming_by_name_is_idempotent(execute, client, world):
    workflow_id = world.create("workflow", NAME)
    definition = webhook_workflow("Hourly sync", "hourly", "immediate")
    for outcome in ("updated", "unchanged"):
        done = execute(ServiceCreateOrUpdateWorkflowOperator, workflow_name=NAME, definition=definition)
        assert (done["workflow_id"], done["name"], done["outcome"]) == (workflow_id, "Hourly sync", outcome)


def test_a_workflow_to_update_must_exist(execute, client, world):
    definition = webhook_workflow("Hourly sync", "hourly", "immediate")
    with pytest.raises(AirflowFailException, match="there is no workflow named 'Nightly sync'"):
        execute(ServiceCreateOrUpdateWorkflowOperator, workflow_name=NAME, definition=definition)
    assert list(client.workflows.list()) == []


def test_a_folder_is_named_by_its_path(execute, client, simulator, world):
    reports = client.folders.create(world.project.id, "Reports")
    daily = client.folders.create(world.project.id, "Daily", parent_folder_id=reports.id)
    client.folders.create(world.project.id, "Daily")
    definition = webhook_workflow("w", "w", "immediate")

    def deploy(folder: str, **project: str) -> None:
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition, parent_folder_name=folder, **project)

    with pytest.raises(AirflowFailException, match="parent_folder_name needs project_id or project_name, in which"):
        deploy("Reports/Daily")
    with pytest.raises(
        AirflowFailException, match=r"there is no folder in 'Reports' in project \w+ named 'daily'.*'Daily'"
    ):
        deploy("Reports/daily", project_name="Sales")
    assert list(client.workflows.list()) == []
    simulator.clear_requests()
    deploy("Reports/Daily", project_name="Sales")
    [created] = [one.body for one in simulator.requests if one.method == "POST"]
    assert (created["projectId"], created["parentFolderId"]) == (world.project.id, daily.id)


def test_a_key_that_may_not_list_projects_is_shown_their_ids(client, simulator, world):
    twins = [world.create("data table", "t"), world.create("data table", "t", world.project.id)]
    key = simulator.create_key(["dataTable:list"])
    with (
        ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=key)) as narrow,
        pytest.raises(ServiceLookupError, match=rf"{twins[1]} \(project {world.project.id}\)"),
    ):
        get_data_table(narrow, "t")
