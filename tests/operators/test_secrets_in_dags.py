"""Literal secrets among the arguments of tasks: Airflow stores the arguments with the DAG."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from airflow.serialization import serialized_objects

from airflow_provider_service.operators._base import revealed
from airflow_provider_service.operators.credentials import ServiceUpdateCredentialOperator
from airflow_provider_service.operators.desired_state import ServiceEnsureVariablesOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

SECRETS = {"X-Token": "literal-secret", "X-List": ["literal-secret"], "X-Template": "{{ var.value.token }}"}
SERIALIZATION: Any = getattr(serialized_objects, "DagSerialization", None) or serialized_objects.SerializedDAG


sealing = pytest.mark.parametrize(
    ("operator", "reference", "name"),
    [
        (ServiceRunWorkflowOperator, {"workflow_id": "w"}, "webhook_headers"),
        (ServiceUpdateCredentialOperator, {"credential_id": "c"}, "data"),
        (ServiceEnsureVariablesOperator, {}, "variables"),
    ],
)


def stored(dag: DAG) -> str:
    text = json.dumps(SERIALIZATION.to_dict(dag))
    assert SERIALIZATION.from_dict(json.loads(text)).task_ids == dag.task_ids
    return text


@sealing
def test_literals_are_not_stored_with_the_dag(operator: type[Any], reference: dict[str, str], name: str) -> None:
    with DAG("dag", schedule=None) as dag:
        plain = operator(task_id="plain", **reference, service_conn_id="c", **{name: SECRETS})
        mapped = operator.partial(task_id="mapped", **reference, **{name: SECRETS}).expand(service_conn_id=["a", "b"])
    text = stored(dag)
    assert "literal-secret" not in text + repr(vars(plain)[name]) + repr(mapped.partial_kwargs[name])
    assert text.count("{{ var.value.token }}") == 2
    # Workers take them from the DAG's file.
    for task in (plain, mapped.unmap({"service_conn_id": "a"})):
        task.render_template_fields({"task": task, "var": {"value": {"token": "t"}}})
        assert revealed(getattr(task, name)) == {**SECRETS, "X-Template": "t"}


@pytest.mark.parametrize("by", ["expand", "expand_kwargs"])
@sealing
def test_literals_that_differ_between_mapped_tasks_are_not_stored(
    operator: type[Any], reference: dict[str, str], name: str, by: str
) -> None:
    other = {**SECRETS, "X-Token": "another-secret"}
    with DAG("dag", schedule=None) as dag:
        made = ServiceRunWorkflowOperator(task_id="made", workflow_id="w")
        if by == "expand":
            mapped = operator.partial(task_id="mapped", **reference).expand(**{name: [SECRETS, other]})
            operator.partial(task_id="of_output", **reference).expand(**{name: made.output})
        else:
            mapped = operator.partial(task_id="mapped", **reference).expand_kwargs([{name: SECRETS}, {name: other}])
            operator.partial(task_id="of_output", **reference).expand_kwargs(made.output)
    text = stored(dag)
    assert not {one for one in ("literal-secret", "another-secret") if one in text + repr(mapped.expand_input.value)}
    assert text.count("{{ var.value.token }}") == 2
    # The scheduler counts them, and workers take them from the DAG's file.
    kept = SERIALIZATION.from_dict(json.loads(text)).get_task("mapped").expand_input.value
    assert len(kept[name] if by == "expand" else kept) == 2
    given = mapped.expand_input.value
    second = given[name][1] if by == "expand" else given[1][name]
    task = mapped.unmap({name: second})
    task.render_template_fields({"task": task, "var": {"value": {"token": "t"}}})
    assert revealed(getattr(task, name)) == {**other, "X-Template": "t"}


def test_the_output_of_another_task_among_them_is_a_dependency() -> None:
    with DAG("dag", schedule=None):
        first = ServiceRunWorkflowOperator(task_id="first", workflow_id="w")
        second = ServiceRunWorkflowOperator(task_id="second", workflow_id="w", webhook_headers={"X-Id": first.output})
    assert second.upstream_task_ids == {"first"}
