"""The service answers lists with nothing: 200, and no item, although there are some.

Nothing is deleted because of that, on the service, on disk or in a database: neither if all lists are empty, nor if one
request after the other is answered so. Every operator is tried, and so is every argument that deletes.
"""

from __future__ import annotations

import inspect
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureDataTablesOperator,
    ServiceEnsureProjectsOperator,
    ServiceEnsureTagsOperator,
    ServiceEnsureVariablesOperator,
)
from airflow_provider_service.operators.instances import (
    ServiceDeployWorkflowsOperator,
    ServiceExportWorkflowsOperator,
    ServicePromoteWorkflowsOperator,
)
from airflow_provider_service.testing._passing_time import time_passes_at
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from tests.instances.workflows import webhook, workflow
from tests.operators.test_every_operator import public_operators

from .surfaces import CALLER, SURFACES, Place, Surface, task
from .test_hostile_values import NAMED, place

__all__ = ["place"]

#: How the docstring of an argument says that it deletes what a list does not hold.
DELETES = re.compile(
    r"True to (?:delete|remove|archive)|deletes all rows of|also deletes the rows|Older ones\s+are deleted"
)


class EmptyAnswers:
    """ASGI layer that answers lists with nothing.

    :param which: the number of the only list that is empty; None for all, and 0 for none.
    """

    def __init__(self, which: int | None) -> None:
        self.which = which
        self.lists = 0

    def around(self, app: ASGIApp) -> ASGIApp:
        self._app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        await self._app(scope, receive, keep)
        start, body = answer[0], b"".join(one.get("body", b"") for one in answer)
        content = json.loads(body) if scope["method"] == "GET" and body[:1] == b"{" else None
        if isinstance(content, dict) and isinstance(content.get("data"), list):
            self.lists += 1
            if self.which in (None, self.lists):
                counts = {"count": 0} if "count" in content else {}
                body = json.dumps({**content, "data": [], "nextCursor": None, **counts}).encode()
        kept = [one for one in start.get("headers", []) if one[0].lower() != b"content-length"]
        await send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})


class Case(NamedTuple):
    """What deletes, when lists are truthful only before.

    :param before: what happens on the truthful service first.
    """

    operator: type[Any]
    surface: Surface
    before: Surface = lambda _: None


def case(operator: type[Any], before: Surface | None = None, **arguments: Any) -> Case:
    surface = task(operator, **arguments)
    return Case(operator, surface, before or surface)


FOLDER = "{{ params.folder }}"
OWNED = {"deployment_name": "sales", "archive_missing": True}
HERE = {"source_conn_id": "service_default", "service_conn_id": "service_default"}
STAY = workflow("stays", webhook("stays"))
FILE = f"{FOLDER}/stock.jsonl"


def _prune(operator: type[Any], prefix: str, **declared: Any) -> Case:
    return case(operator, lambda _: None, **declared, prune=True, prune_prefix=prefix)


CASES = {
    "export": case(ServiceExportWorkflowsOperator, path=f"{FOLDER}/export", code_files=True, remove_stale=True),
    "export of a tag": case(ServiceExportWorkflowsOperator, path=f"{FOLDER}/export", tag_name="all", remove_stale=True),
    "rotation": case(
        ServiceBackupOperator,
        task(ServiceBackupOperator, path=f"{FOLDER}/old.zip"),
        path=f"{FOLDER}/backup.zip",
        keep=1,
    ),
    "replaced backup": case(ServiceBackupOperator, path=f"{FOLDER}/backup.zip"),
    "restore": case(
        ServiceRestoreOperator,
        task(ServiceBackupOperator, path=f"{FOLDER}/backup.zip"),
        path=f"{FOLDER}/backup.zip",
        on_conflict="update",
    ),
    "deployment": case(ServiceDeployWorkflowsOperator, source=[CALLER, STAY], **OWNED),
    "promotion": case(ServicePromoteWorkflowsOperator, tag_name="all", **HERE, **OWNED),
    "tags": _prune(ServiceEnsureTagsOperator, "a", tags=["all"]),
    "variables": _prune(ServiceEnsureVariablesOperator, "S", variables={"STAGE": "test"}),
    "tables": _prune(
        ServiceEnsureDataTablesOperator, "sto", data_tables={"stock": {"sku": "string", "amount": "number"}}
    ),
    "projects": _prune(ServiceEnsureProjectsOperator, "Sa", projects={"Sales": None}),
    "load": case(
        ObjectStorageToServiceDataTableOperator, lambda _: None, path=FILE, data_table_name="stock", mode="replace"
    ),
    "load of missing rows": case(
        ObjectStorageToServiceDataTableOperator,
        lambda _: None,
        path=FILE,
        data_table_name="stock",
        key_columns="sku",
        delete_missing=True,
    ),
    "load from a database": case(
        SqlToServiceDataTableOperator,
        lambda _: None,
        sql="SELECT * FROM articles",
        sql_conn_id="shop",
        data_table_name="stock",
        mode="replace",
    ),
    "unload into a database": case(
        ServiceDataTableToSqlOperator, data_table_name="stock", sql_table="stock", sql_conn_id="shop", mode="replace"
    ),
}


class Ended(NamedTuple):
    """What a surface has left.

    :param lists: how many lists it read.
    :param missing: what there is no more on the service, in the folder and in the database.
    """

    lists: int
    missing: set[str]
    error: str


def held(place: Place) -> set[str]:
    """What there is: objects of the service that are not archived, files, and tables with rows."""
    with ServiceClient(place.config) as client:
        kinds: dict[str, Any] = {
            "workflow": (one for one in client.workflows.list() if not one.is_archived),
            **{name: getattr(client, name).list() for name in ("tags", "variables", "credentials", "projects")},
        }
        found = {f"{kind} {one.id}" for kind, many in kinds.items() for one in many}
        for table in client.data_tables.list():
            found |= {f"table {table.id}"}
            found |= {f"rows of {table.id}" for _ in client.data_table_rows.list(table.id, limit=1)}
    for path in (one for one in place.folder.rglob("*") if one.is_file()):
        text = path.read_bytes()
        # A lie can change the name of a file, but not lose what is in it.
        is_exported = path.suffix == ".json" and b'"nodes"' in text and "id" in json.loads(text)
        found.add(f"file of {json.loads(text)['id']}" if is_exported else f"file {path.name}")
        if path.suffix == ".zip":
            with ZipFile(path) as archive:
                counts = json.loads(archive.read("manifest.json"))["counts"]
            found |= {
                f"{kind} in {path.name}" for kind in ("workflows", "credentials", "data_tables") if counts.get(kind)
            }
    with closing(sqlite3.connect(place.folder / "shop.sqlite")) as database:
        return found | {
            f"rows of {one}" for one in ("stock", "articles") if [*database.execute(f"SELECT 1 FROM {one}")]
        }


def ended(made: Place, case: Case, which: int | None) -> Ended:
    layer, error = EmptyAnswers(which), ""
    with time_passes_at(made.simulator):
        with suppress(*NAMED):  # what the examples need is not there twice
            case.before(made)
        before = held(made)
        made.simulator.wrap(layer.around)
        try:
            case.surface(made)
        except NAMED as caught:
            error = str(caught)
    layer.which = TRUTHFUL
    lists = layer.lists
    return Ended(lists, before - held(made), error)


TRUTHFUL = 0


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_deleted_because_lists_are_empty(place: Callable[[], Place], name: str) -> None:
    truth = ended(place(), CASES[name], TRUTHFUL)
    assert truth.error == "", name
    assert truth.lists

    for which in (None, *range(1, truth.lists + 1)):
        lie = ended(place(), CASES[name], which)
        assert not lie.missing - truth.missing, f"{name}: list {which} of {truth.lists} is empty: {lie}"


@pytest.mark.parametrize("name", ["export", "rotation", "replaced backup"])
def test_a_task_fails_by_the_rule_if_all_lists_are_empty(place: Callable[[], Place], name: str) -> None:
    lie = ended(place(), CASES[name], None)

    assert "give allow_empty=True" in lie.error
    assert lie.missing == set()


@pytest.mark.slow(one_in=10)
@pytest.mark.parametrize("name", SURFACES)
def test_no_operator_and_no_command_deletes_more_than_on_a_truthful_service(
    place: Callable[[], Place], name: str
) -> None:
    one = Case(type(None), SURFACES[name])
    truth, lie = ended(place(), one, TRUTHFUL), ended(place(), one, None)

    assert not lie.missing - truth.missing


def test_every_operator_that_deletes_what_a_list_lacks_takes_allow_empty_and_is_tried() -> None:
    own = {
        operator: [base for base in operator.__mro__ if base.__module__.startswith("airflow_provider_service")]
        for operator in public_operators()
    }
    found = {one for one, bases in own.items() if any(DELETES.search(inspect.getdoc(base) or "") for base in bases)}
    taking = {
        one
        for one, bases in own.items()
        if any("allow_empty" in inspect.signature(base.__init__).parameters for base in bases)
    }
    assert len(found) > len(CASES) / 2
    assert found <= taking
    assert taking == {one.operator for one in CASES.values()}
