"""A template renders to text unless the DAG says otherwise: the text of a mapping never becomes the body of a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, literal, task

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.testing import SimulatedService, run_task

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]

ORDER = {"id": 7, "tags": ["a"]}


def run(payload: Any, *, native: bool = False, order: Any = ORDER) -> None:
    with DAG("dag", schedule=None, params={"order": order}, render_template_as_native_obj=native):
        one = ServiceRunWorkflowOperator(task_id="run", workflow_name="Sync", payload=payload)
    run_task(one)


@pytest.mark.parametrize("trigger", ["webhook", "form", "sub-workflow"])
@pytest.mark.parametrize(
    "payload", ["{{ params.order }}", "{{ params.order | tojson }}", '{"id": {{ params.order.id }}}']
)
def test_the_text_of_a_mapping_starts_nothing(service: SimulatedService, trigger: Any, payload: str) -> None:
    workflow = service.workflow("Sync", trigger=trigger)
    with pytest.raises(
        AirflowFailException, match=r"render_template_as_native_obj=True, or pass a mapping.*nothing was"
    ):
        run(payload)
    assert workflow.runs == []


@pytest.mark.parametrize("order", [[], [1], ["a"], [ORDER], {}, {"a": "}"}])
def test_nor_does_that_of_a_list_or_of_nothing(service: SimulatedService, order: Any) -> None:
    workflow = service.workflow("Sync")
    with pytest.raises(AirflowFailException, match="payload is the text of a mapping or a list"):
        run("{{ params.order }}", order=order)
    assert workflow.runs == []


def test_the_documented_alternatives_start_the_workflow_with_the_mapping(service: SimulatedService) -> None:
    service.workflow("Sync")
    run("{{ params.order }}", native=True)
    service.assert_ran("Sync", payload=ORDER)
    run({"id": "{{ params.order.id }}"})
    assert [one.payload for one in service.runs("Sync")] == [ORDER, {"id": "7"}]


@pytest.mark.parametrize(
    "text",
    [
        "[urgent] {{ params.order.id }}",
        "{% if true %}done{% endif %}",
        "{7 of them",
        "{ {{- 1 -}} } of { {{- 2 -}} }",
        "[{{ ds }}] DAG failed [prod]",
        "{ {{- '7' -}} }",
    ],
)
def test_other_text_is_a_payload(service: SimulatedService, text: str) -> None:
    service.workflow("Sync")
    run(text)
    assert len(service.runs("Sync")) == 1


def test_a_chat_takes_any_text(service: SimulatedService) -> None:
    service.workflow("Sync", trigger="chat")
    run("{{ params.order }}")
    service.assert_ran("Sync", payload=str(ORDER))


def test_a_function_may_return_any_text(service: SimulatedService) -> None:
    service.workflow("Sync")

    with DAG("dag", schedule=None):

        @task.service_workflow(workflow_name="Sync")
        def order() -> str:
            return json.dumps(ORDER)

        run_task(order())
    service.assert_ran("Sync", payload=json.dumps(ORDER))


@pytest.mark.parametrize(
    "payload",
    [literal('{"id": 7}'), literal("{{ params.order }}"), "[2026-01-01] DAG failed [prod]"],
)
def test_a_text_without_a_template_is_a_payload(service: SimulatedService, payload: Any) -> None:
    service.workflow("Sync")
    run(payload)
    service.assert_ran("Sync", payload=payload if isinstance(payload, str) else payload.value)


@pytest.mark.parametrize("payload", ['{"id": 7}', " []", "{'id': 7}"])
def test_a_dag_file_cannot_give_the_text_of_a_mapping(payload: str) -> None:
    with pytest.raises(ServiceInputError, match=r"payload is the text of a mapping or a list, and would be .* literal"):
        ServiceRunWorkflowOperator(task_id="run", workflow_name="Sync", payload=payload)


def test_a_dag_file_cannot_give_text_to_a_sub_workflow() -> None:
    for given in ({}, {"deferrable": True}):
        with pytest.raises(
            ServiceInputError, match="takes a mapping or a list of mappings as its payload, not 'Hello'"
        ):
            ServiceRunWorkflowOperator(task_id="run", workflow_id="1", payload="Hello", start="bridge", **given)
    ServiceRunWorkflowOperator(task_id="run", workflow_id="1", payload="{{ params.order }}", start="bridge")


def run_mapped(payload: Any) -> None:
    with DAG("dag", schedule=None, params={"order": ORDER}):
        mapped = ServiceRunWorkflowOperator.partial(task_id="run", workflow_name="Sync").expand(payload=[payload])
    run_task(mapped.unmap({"payload": payload}))


def test_a_mapped_task_may_send_such_text(service: SimulatedService) -> None:
    service.workflow("Sync")
    run_mapped('{"id": 7}')
    service.assert_ran("Sync", payload='{"id": 7}')


def test_the_text_of_a_mapping_does_not_start_a_mapped_task(service: SimulatedService) -> None:
    workflow = service.workflow("Sync")
    with pytest.raises(AirflowFailException, match="payload is the text of a mapping or a list"):
        run_mapped("{{ params.order }}")
    assert workflow.runs == []
