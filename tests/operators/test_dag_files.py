"""What a DAG file leaves out is refused when it is read, unless a template may still give it."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureDataTablesOperator,
    ServiceEnsureProjectsOperator,
    ServiceEnsureTagsOperator,
    ServiceEnsureVariablesOperator,
)
from airflow_provider_service.operators.execution_selections import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionsOperator,
)
from airflow_provider_service.operators.rows import ServiceDeleteRowsOperator

FILTER = {"filters": [{"columnName": "sku", "condition": "eq", "value": "{{ ds }}"}]}
ROWS: tuple[Any, dict[str, Any], str] = (ServiceDeleteRowsOperator, {"data_table_name": "t"}, "row_ids or filter")
STOP: tuple[Any, dict[str, Any], str] = (ServiceStopExecutionsOperator, {}, "or all_workflows=True")
DELETE: tuple[Any, dict[str, Any], str] = (ServiceDeleteExecutionsOperator, {}, "or all_workflows=True")
DESIRED = {
    ServiceEnsureDataTablesOperator: "data_tables",
    ServiceEnsureProjectsOperator: "projects",
    ServiceEnsureTagsOperator: "tags",
    ServiceEnsureVariablesOperator: "variables",
}
PRUNES = [
    (kind, {name: "{{ params.desired }}", "prune": True}, "prune=True needs prune_names or prune_prefix")
    for kind, name in DESIRED.items()
]
EACH = pytest.mark.parametrize(("kind", "others", "words"), [ROWS, STOP, DELETE, *PRUNES])


@EACH
def test_a_selection_that_is_missing_is_refused(kind: Any, others: dict[str, Any], words: str) -> None:
    with pytest.raises(ServiceInputError, match=words):
        kind(task_id="task", **others)


@pytest.mark.parametrize(
    ("subject", "given"),
    [
        (STOP, {"workflow_id": "1", "all_workflows": True}),
        (DELETE, {"workflow_name": "Sync", "all_workflows": True}),
        (STOP, {"status": "running"}),
    ],
)
def test_what_excludes_itself_is_refused(subject: Any, given: dict[str, Any]) -> None:
    kind, others, words = subject
    with pytest.raises(ServiceInputError, match=words):
        kind(task_id="task", **others, **given)


@pytest.mark.parametrize(
    ("subject", "given"),
    [
        (ROWS, {"row_ids": "{{ params.ids }}"}),
        (ROWS, {"row_ids": "{{ params.ids }}", "filter": "{{ params.filter }}"}),
        (ROWS, {"filter": FILTER}),
        (STOP, {"workflow_id": "{{ params.id }}"}),
        (STOP, {"workflow_id": "{{ params.id }}", "all_workflows": True}),
        (DELETE, {"execution_ids": [1]}),
        (DELETE, {"execution_ids": "{{ params.ids }}"}),
        *((one, {"prune_names": "{{ params.names }}"}) for one in PRUNES),
        *((one, {"prune_prefix": "old-"}) for one in PRUNES),
    ],
)
def test_what_a_template_may_give_is_not(subject: Any, given: dict[str, Any]) -> None:
    kind, others, _ = subject
    kind(task_id="task", **others, **given)


@EACH
def test_what_a_mapped_task_gets_is_not(kind: Any, others: dict[str, Any], words: str) -> None:
    names = {ServiceDeleteRowsOperator: "row_ids", ServiceDeleteExecutionsOperator: "execution_ids"}
    name = names.get(kind, "workflow_id" if kind is ServiceStopExecutionsOperator else "prune_names")
    with DAG("dag", schedule=None):
        mapped = kind.partial(task_id="task", **others).expand(**{name: [["1"], ["2"]]})
    assert getattr(mapped.unmap({name: ["1"]}), name) == ["1"]
