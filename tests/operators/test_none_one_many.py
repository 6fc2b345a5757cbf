"""Every argument that takes many things is tried with none, one and several: each works, or is refused clearly."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pkgutil import iter_modules
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import ServiceClient, resources
from airflow_provider_service.client.errors import ServiceError, ServiceInputError
from airflow_provider_service.operators.backups import ServiceBackupOperator
from tests.instances.conftest import running_second as running_second
from tests.instances.conftest import second as second

from .test_every_operator import OPERATORS, described_bases

pytestmark = pytest.mark.usefixtures("virtual_time")


@dataclass(frozen=True)
class Case:
    """How an argument is tested.

    :param given: none, one, and several things.
    :param others: the other arguments.
    :param shown: the name in the result that shows what was done.
    :param outcomes: what exists afterwards, or words of the refusal.
    """

    given: tuple[Any, Any, Any]
    others: dict[str, Any]
    shown: str
    outcomes: tuple[Any, Any, Any]


class Refused(str):
    """Words of a message."""


TABLE = {"data_table_name": "stock"}
RUN = {"workflow_name": "hook"}
FILE = {**TABLE, "path": "{folder}/in.csv", "mode": "append"}
QUERY = {**TABLE, "sql": "SELECT 'x' AS sku, 1 AS stock", "sql_conn_id": "shop", "mode": "append"}
STORED = {**TABLE, "sql_table": "t", "sql_conn_id": "shop", "mode": "append", "columns": ["sku", "stock"]}
WRITTEN = {**TABLE, "path": "{folder}/out.jsonl"}

KEYS = ([], ["sku"], ["sku", "stock"])
ROWS = ([], [{"sku": "x"}], [{"sku": "x"}, {"sku": "y"}])
RENAMED = ({}, {"sku": "shop"}, {"sku": "shop", "stock": "stock"})
TYPES = ({}, {"sku": "string"}, {"sku": "string", "stock": "number"})
ONE_AT_LEAST = (Refused("columns must name at least one column"), 3, 3)
PRUNED = ([], ["old 1"], ["old 1", "old 2"])
DEFINITIONS = [{"name": name, "nodes": [], "connections": {}, "settings": {}} for name in ("new 1", "new 2")]
RENAMED_WORKFLOWS = ({}, {"workflows": {"new 1": "a"}}, {"workflows": {"new 1": "a", "new 2": "b"}})
BACKUP = {"path": "{folder}/backup.zip", "service_conn_id": "production", "activate": False}
HEADERS = ({}, {"X-A": "a"}, {"X-A": "a", "X-B": "b"})
FILES = ({}, {"a": "{folder}/in.csv"}, {"a": "{folder}/in.csv", "b": "{folder}/in.csv"})
USERS = ["a@example.com", "b@example.com"]

CASES: dict[str, Case] = {
    "ServiceGenerateAuditOperator.categories": Case(
        ([], ["nodes"], ["nodes", "instance"]), {}, "findings", (Refused("categories must not be an empty list"), 0, 1)
    ),
    "ServiceGenerateAuditOperator.fail_on": Case(
        ([], ["database"], ["database", "filesystem"]), {}, "findings", (1, 1, 1)
    ),
    "ServiceCreateDataTableOperator.columns": Case(
        ({}, {"a": "string"}, {"a": "string", "b": "date"}), {"name": "t"}, "outcome", ("created", "created", "created")
    ),
    "ServiceDeleteExecutionsOperator.execution_ids": Case(([], ["1"], ["1", "2"]), {}, "deleted", (0, 1, 2)),
    "ServiceDeleteExecutionsOperator.status": Case(
        ([], ["error"], ["error", "success"]), RUN, "deleted", (Refused("status must not be empty"), 1, 2)
    ),
    "ServiceStopExecutionsOperator.status": Case(
        ([], ["waiting"], ["waiting", "running"]),
        {"workflow_name": "stuck"},
        "stopped",
        (Refused("status must not be empty"), 1, 2),
    ),
    "ServiceExportWorkflowsOperator.workflow_names": Case(
        ([], ["hook"], ["hook", "other"]), {"path": "{folder}"}, "workflows", (0, 1, 2)
    ),
    "ServicePromoteWorkflowsOperator.workflow_names": Case(
        ([], ["hook"], ["hook", "other"]),
        {"source_conn_id": "service_default", "service_conn_id": "production"},
        "created",
        (Refused("the source has no workflow to promote"), ["hook"], ["hook", "other"]),
    ),
    "ServiceDeployWorkflowsOperator.source": Case(
        ([], DEFINITIONS[:1], DEFINITIONS),
        {},
        "created",
        (Refused("source holds no definition"), ["new 1"], ["new 1", "new 2"]),
    ),
    "ServiceDeployWorkflowsOperator.mapping": Case(
        RENAMED_WORKFLOWS, {"source": DEFINITIONS}, "created", (["new 1", "new 2"], ["a", "new 2"], ["a", "b"])
    ),
    "ServicePromoteWorkflowsOperator.mapping": Case(
        ({}, {"workflows": {"hook": "a"}}, {"workflows": {"hook": "a", "other": "b"}}),
        {"source_conn_id": "service_default", "service_conn_id": "production", "workflow_names": ["hook", "other"]},
        "created",
        (["hook", "other"], ["a", "other"], ["a", "b"]),
    ),
    "ServiceRestoreOperator.kinds": Case(
        ([], ["tags"], ["tags", "variables"]),
        BACKUP,
        "outcome",
        (Refused("kinds must not be an empty list"), "restored", "restored"),
    ),
    "ServiceRestoreOperator.names": Case(
        ([], ["old 1"], ["old 1", "old 2"]),
        BACKUP,
        "outcome",
        (Refused("names must not be an empty list"), "restored", "restored"),
    ),
    "ServiceRestoreOperator.mapping": Case(
        ({}, {"tags": {"old 1": "a"}}, {"tags": {"old 1": "a", "old 2": "b"}}),
        BACKUP,
        "outcome",
        ("restored", "restored", "restored"),
    ),
    "ServiceDeleteRowsOperator.row_ids": Case(([], [1], [1, 2]), TABLE, "deleted", (0, 1, 2)),
    "ServiceInsertRowsOperator.rows": Case(ROWS, TABLE, "inserted", (0, 1, 2)),
    "ServiceUpsertRowsOperator.rows": Case(ROWS, {**TABLE, "key_columns": "sku"}, "inserted", (0, 1, 2)),
    "ServiceUpsertRowsOperator.key_columns": Case(
        KEYS,
        {**TABLE, "rows": [{"sku": "a", "stock": 9}]},
        "inserted",
        (Refused("key_columns must name columns of the table"), 0, 1),
    ),
    "ServiceUpdateRowsOperator.data": Case(
        ({}, {"stock": 5}, {"stock": 5, "shop": "s"}),
        {**TABLE, "filter": {"type": "and", "filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]}},
        "updated",
        (Refused("data must be one object with at least one column"), 1, 1),
    ),
    "ServiceRunWorkflowOperator.path_parameters": Case(
        ({}, {"a": 1}, {"a": 1, "b": 2}),
        {"workflow_name": "parts"},
        "status",
        (Refused("path_parameters"), Refused("path_parameters"), "success"),
    ),
    "ServiceRunWorkflowOperator.files": Case(FILES, RUN, "status", ("success", "success", "success")),
    "ServiceRunWorkflowOperator.webhook_headers": Case(HEADERS, RUN, "status", ("success", "success", "success")),
    "ServicePushSourceControlOperator.types": Case(
        ([], ["workflow"], ["workflow", "tags"]), {"commit_message": "m"}, "count", (Refused("types is empty"), 4, 4)
    ),
    "ServicePushSourceControlOperator.object_ids": Case(
        ([], ["{hook}"], ["{hook}", "{other}"]), {"commit_message": "m"}, "count", (0, 1, 2)
    ),
    "ServiceInviteUsersOperator.users": Case(([], USERS[:1], USERS), {}, "invited", ([], USERS[:1], USERS)),
    "ServiceEnsureDataTablesOperator.data_tables": Case(
        ({}, {"n1": {"a": "string"}}, {"n1": {"a": "string"}, "n2": {"a": "string"}}), {}, "created", (0, 1, 2)
    ),
    "ServiceEnsureDataTablesOperator.prune_names": Case(
        PRUNED, {"data_tables": {}, "prune": True}, "deleted", (0, 1, 2)
    ),
    "ServiceEnsureProjectsOperator.projects": Case(({}, {"n1": {}}, {"n1": {}, "n2": None}), {}, "created", (0, 1, 2)),
    "ServiceEnsureProjectsOperator.prune_names": Case(PRUNED, {"projects": {}, "prune": True}, "deleted", (0, 1, 2)),
    "ServiceEnsureTagsOperator.tags": Case(([], ["n1"], ["n1", "n2"]), {}, "created", (0, 1, 2)),
    "ServiceEnsureTagsOperator.prune_names": Case(PRUNED, {"tags": [], "prune": True}, "deleted", (0, 1, 2)),
    "ServiceEnsureVariablesOperator.variables": Case(
        ({}, {"n1": "x"}, {"n1": "x", "n2": "y"}), {}, "created", (0, 1, 2)
    ),
    "ServiceEnsureVariablesOperator.prune_names": Case(
        ([], ["old_1"], ["old_1", "old_2"]), {"variables": {}, "prune": True}, "deleted", (0, 1, 2)
    ),
    "ServiceSetWorkflowTagsOperator.tags": Case(([], ["n1"], ["n1", "n2"]), RUN, "tags", ([], ["n1"], ["n1", "n2"])),
    "ServiceSetWorkflowTagsOperator.tag_ids": Case(
        ([], ["{old_1}"], ["{old_1}", "{old_2}"]), RUN, "tags", ([], ["old 1"], ["old 1", "old 2"])
    ),
    "SqlToServiceDataTableOperator.key_columns": Case(
        KEYS, {**QUERY, "mode": None}, "inserted", (Refused("give key_columns, which make it an upsert, or mode"), 1, 1)
    ),
    "SqlToServiceDataTableOperator.column_mapping": Case(RENAMED, QUERY, "inserted", (1, 1, 1)),
    "SqlToServiceDataTableOperator.column_types": Case(TYPES, QUERY, "inserted", (1, 1, 1)),
    "ObjectStorageToServiceDataTableOperator.key_columns": Case(
        KEYS, {**FILE, "mode": None}, "inserted", (Refused("give key_columns, which make it an upsert, or mode"), 1, 1)
    ),
    "ObjectStorageToServiceDataTableOperator.column_mapping": Case(RENAMED, FILE, "inserted", (1, 1, 1)),
    "ObjectStorageToServiceDataTableOperator.column_types": Case(TYPES, FILE, "inserted", (1, 1, 1)),
    "ServiceReadRowsOperator.columns": Case(([], ["sku"], ["sku", "id"]), TABLE, "count", ONE_AT_LEAST),
    "ServiceDataTableToObjectStorageOperator.columns": Case(
        ([], ["sku"], ["sku", "id"]), WRITTEN, "count", ONE_AT_LEAST
    ),
    "ServiceDataTableToSqlOperator.key_columns": Case(
        KEYS, {**STORED, "mode": None}, "count", (Refused("give key_columns, which make it an upsert, or mode"), 3, 3)
    ),
    "ServiceDataTableToSqlOperator.column_mapping": Case(
        RENAMED, {**STORED, "columns": ["sku", "stock"]}, "count", (3, 3, 3)
    ),
    "ServiceDataTableToSqlOperator.columns": Case(([], ["sku"], ["sku", "stock"]), STORED, "count", ONE_AT_LEAST),
}

#: Arguments that hold one thing, although it is a mapping.
ONE_THING = {
    *("filter", "definition", "arguments", "parameters", "hook_params"),  # a condition, a workflow, a call, a query
    *("ServiceCreateCredentialOperator.data", "ServiceUpdateCredentialOperator.data"),  # a secret
    *("ServiceCreateCredentialOperator.data_conn_fields", "ServiceUpdateCredentialOperator.data_conn_fields"),
}
_MANY = re.compile(r"\b(Sequence|Collection|Iterable|Mapping|list|set)\[")


def takes_many() -> set[str]:
    found = {"ServiceDeployWorkflowsOperator.source"}  # its type is anything
    for operator in OPERATORS:
        kinds = (operator, *described_bases(operator))
        for one in (one for kind in kinds for one in inspect.signature(kind.__init__).parameters.values()):
            full = f"{operator.__name__}.{one.name}"
            if one.kind is one.KEYWORD_ONLY and _MANY.search(str(one.annotation)) and not {one.name, full} & ONE_THING:
                found.add(full)
    return found


def test_every_argument_that_takes_many_things_has_a_case() -> None:
    assert takes_many() == CASES.keys()


@pytest.fixture
def names(simulator, client, second, tmp_path, monkeypatch):
    """What the arguments name, in an instance with two objects of every kind; ``{name}`` stands for each."""
    columns = [
        {"name": name, "type": kind} for name, kind in (("shop", "string"), ("sku", "string"), ("stock", "number"))
    ]
    table = client.data_tables.create("stock", columns)
    client.data_table_rows.insert(table.id, [{"sku": sku, "stock": 1} for sku in "abc"])
    hook, other = (simulator.create_webhook_workflow(name, path=name)["id"] for name in ("hook", "other"))
    for status in ("error", "success"):
        simulator.start_execution(hook, status=status)
    simulator.create_webhook_workflow("parts", path="parts/:a/:b")
    stuck = simulator.create_webhook_workflow("stuck", path="stuck")["id"]
    for status in ("waiting", "running"):
        simulator.start_execution(stuck, status=status)
    tags = {name.replace(" ", "_"): client.tags.create(name).id for name in ("old 1", "old 2")}
    for name in ("old 1", "old 2"):
        client.data_tables.create(name, [{"name": "a", "type": "string"}])
        client.projects.create(name)
        client.variables.create(name.replace(" ", "_"), "x")
    simulator.state.source_control.connect()
    (tmp_path / "in.csv").write_text("sku,stock\nx,1\n")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "shop")}))
    with closing(sqlite3.connect(tmp_path / "shop")) as database:
        database.execute("CREATE TABLE t (shop TEXT, sku TEXT, stock REAL)")
    ids = {"table": table.id, "hook": hook, "other": other, "stuck": stuck}
    return {"folder": str(tmp_path), **ids, **tags}


def filled_in(value, names):
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], value)
    if isinstance(value, dict):
        return {key: filled_in(one, names) for key, one in value.items()}
    return [filled_in(one, names) for one in value] if isinstance(value, list) else value


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("number", range(3), ids=["none", "one", "many"])
@pytest.mark.parametrize("name", CASES)
def test_none_one_and_many(execute, names, name, number):
    case = CASES[name]
    if case.others is BACKUP:
        execute(ServiceBackupOperator, path=filled_in(BACKUP["path"], names))
    operator = next(one for one in OPERATORS if one.__name__ == name.partition(".")[0])
    argument = name.partition(".")[2]
    arguments = {**case.others, argument: case.given[number]}
    expected = case.outcomes[number]
    if isinstance(expected, Refused):
        # What the DAG file alone shows is refused while it is parsed.
        with pytest.raises((ServiceInputError, AirflowFailException), match=expected):
            execute(operator, **filled_in(arguments, names))
        return
    found = execute(operator, **filled_in(arguments, names))[case.shown]
    assert [one["email"] for one in found] == expected if case.shown == "invited" else found == expected


@dataclass(frozen=True)
class Method:
    """How a method of the hook's resources is tested: what is given, a call with it, and what is there then."""

    given: tuple[Any, Any, Any]
    call: Callable[[ServiceClient, dict[str, str], Any], object]
    outcomes: tuple[Any, Any, Any]


def members_added(client: ServiceClient, emails: list[str]) -> int:
    project = client.projects.create("team").id
    before = len(list(client.projects.list_users(project)))
    for email in USERS:
        client.users.create([{"email": email, "role": "global:member"}])
    ids = {one.email: one.id for one in client.users.list()}
    client.projects.add_users(project, [{"userId": ids[one], "role": "project:viewer"} for one in emails])
    return len(list(client.projects.list_users(project))) - before


def pushed(client: ServiceClient, ids: list[str]) -> int:
    every = client.source_control.get_status(direction="push")
    files = [{"id": one.id, "type": one.type} for one in every if one.id in ids]
    return len({one.id for one in client.source_control.push("message", files)} & {*ids})


METHODS: dict[str, Method] = {
    "Audit.generate.categories": Method(
        ([], ["instance"], ["instance", "nodes"]),
        lambda client, _, given: len(client.audit.generate(categories=given)),
        (1, 1, 1),
    ),
    "DataTableRows.insert.data": Method(
        ROWS,
        lambda client, names, given: client.data_table_rows.insert(names["table"], given).inserted_rows,
        (Refused("data must be a list of at least one row"), 1, 2),
    ),
    "DataTables.create.columns": Method(
        ([], [{"name": "a", "type": "string"}], [{"name": "a", "type": "string"}, {"name": "b", "type": "date"}]),
        lambda client, _, given: len(client.data_tables.create("new", given).columns or ()),
        (0, 1, 2),
    ),
    "Executions.stop_many.status": Method(
        ([], ["waiting"], ["waiting", "running"]),
        lambda client, names, given: client.executions.stop_many(given, workflow_id=names["stuck"]).stopped,
        (Refused("status must be a list of at least one status"), 1, 2),
    ),
    "Executions.update_tags.tag_ids": Method(
        ([], ["{old_1}"], ["{old_1}", "{old_2}"]),
        lambda client, _, given: len(client.executions.update_tags("1", given)),
        (0, *[Refused("Some tags not found")] * 2),  # executions have tags of their own, which no operation creates
    ),
    "Projects.add_users.relations": Method(
        ([], USERS[:1], USERS),
        lambda client, _, given: members_added(client, given),
        (Refused("relations must be a list of at least one"), 1, 2),
    ),
    "SourceControl.push.file_names": Method(
        ([], ["{hook}"], ["{hook}", "{other}"]),
        lambda client, _, given: pushed(client, given),
        (Refused("file_names must be a list of at least one id and type"), 1, 2),
    ),
    "Users.create.users": Method(
        ([], USERS[:1], USERS),
        lambda client, _, given: len(client.users.create([{"email": one, "role": "global:member"} for one in given])),
        (Refused("users must be a list of at least one user"), 1, 2),
    ),
    "Workflows.list.tags": Method(  # those that have all of the tags
        ([], ["old 1"], ["old 1", "old 2"]),
        lambda client, _, given: len(list(client.workflows.list(tags=given))),
        (4, 0, 0),
    ),
    "Workflows.update_tags.tag_ids": Method(
        ([], ["{old_1}"], ["{old_1}", "{old_2}"]),
        lambda client, names, given: len(client.workflows.update_tags(names["hook"], given)),
        (0, 1, 2),
    ),
}
#: Parameters of methods that hold parts of one thing: the fields of an answer, an archive, a workflow.
PARTS = {
    "Folders.list.select",
    *(f"Packages.export.{kind}_ids" for kind in ("workflow", "folder", "project")),
    *(f"Workflows.{method}.{part}" for method in ("create", "update") for part in ("nodes", "node_groups", "shared")),
}


def methods_that_take_many() -> set[str]:
    modules = [importlib.import_module(f"{resources.__name__}.{one.name}") for one in iter_modules(resources.__path__)]
    kinds = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)}
    return {
        f"{kind.__name__}.{name}.{one.name}"
        for kind in kinds
        if kind.__module__.startswith(resources.__name__)
        for name, method in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(method)
        for one in inspect.signature(method).parameters.values()
        if _MANY.search(str(one.annotation).replace("Mapping[", ""))
        and f"{kind.__name__}.{name}.{one.name}" not in PARTS
    }


def test_every_method_that_takes_many_things_has_a_case() -> None:
    assert methods_that_take_many() == METHODS.keys()


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("number", range(3), ids=["none", "one", "many"])
@pytest.mark.parametrize("name", METHODS)
def test_methods_take_none_one_and_many(names, client, name, number):
    method = METHODS[name]
    given, expected = filled_in(method.given[number], names), method.outcomes[number]
    if isinstance(expected, Refused):
        with pytest.raises(ServiceError, match=expected):
            method.call(client, names, given)
    else:
        assert method.call(client, names, given) == expected
