"""Rules for every operator: its fields render, it can be mapped, it checks nothing early, it is documented."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any, is_typeddict
from unittest.mock import Mock

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.get_provider_info import get_provider_info
from airflow_provider_service.links.service import ServiceLink
from airflow_provider_service.operators._base import ServiceBaseOperator, revealed
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.transfers._loading import ServiceLoadTableOperator
from tests.results import result_type


def public_operators() -> list[type[ServiceBaseOperator]]:
    info = get_provider_info()
    [listed] = info["operators"]
    return [
        member
        for name in (*listed["python-modules"], *(one["python-module"] for one in info["transfers"]))
        for _, member in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if issubclass(member, ServiceBaseOperator) and member.__module__ == name and not member.__name__.startswith("_")
    ]


PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"
OPERATORS = public_operators()
every_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)


def rendered_fields(operator: type[ServiceBaseOperator]) -> list[str]:
    """The template fields whose texts are templates."""
    return [name for name in operator.template_fields if name not in getattr(operator, "verbatim_fields", ())]


def own_arguments(operator: type[ServiceBaseOperator]) -> list[str]:
    """The arguments that the operator adds to Airflow's: its own, and those of a base that it points to."""
    parameters = inspect.signature(operator.__init__).parameters.values()
    own = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    return own + [name for base in described_bases(operator) for name in own_arguments(base)]


def described_bases(operator: type[ServiceBaseOperator]) -> list[type[ServiceBaseOperator]]:
    """The bases whose documentation describes arguments of the operator."""
    return [base for base in operator.__bases__ if base is ServiceLoadTableOperator]


def arguments_of_bases(operator: type[ServiceBaseOperator]) -> set[str]:
    """The arguments of the operator and of the bases that the provider gives it."""
    ours = [kind for kind in operator.__mro__ if kind.__module__.startswith("airflow_provider_service")]
    return {name for kind in ours for name in own_arguments(kind) if issubclass(kind, ServiceBaseOperator)}


def given_together(operator: type[ServiceBaseOperator], field: str | None = None) -> list[str]:
    """The template fields that a task may have together: of each pair of id and name one, the field, or else the id.

    Those that may not be any text are left out, and a file of rejects, which needs ``on_error="skip"``.
    """
    pairs = [pair.fields for pair in operator.references]
    left_out = {one for pair in pairs for one in pair if one != (field if field in pair else pair[0])}
    return [one for one in operator.template_fields if one not in left_out | operator.checks.keys() | {"reject_path"}]


def test_its_page_names_every_operator_once():
    named = re.findall(r"^\| `(\w*Operator)`", PAGE.read_text(), re.M)
    assert sorted(named) == sorted(operator.__name__ for operator in OPERATORS)
    assert len(set(named)) == len(named)


@every_operator
def test_every_template_field_is_an_argument_that_renders(operator):
    assert len(set(operator.template_fields)) == len(operator.template_fields)
    assert set(operator.template_fields) <= arguments_of_bases(operator)
    task = operator(task_id="task", **dict.fromkeys(operator.template_fields, "{{ value }}"))
    task.render_template_fields({"task": task, "value": "rendered"})
    assert {revealed(getattr(task, name)) for name in rendered_fields(operator)} == {"rendered"}


@every_operator
def test_templates_in_lists_and_mappings_render(operator):
    nested = {"list": ["{{ value }}"], "mapping": {"key": "{{ value }}"}}
    task = operator(task_id="task", **dict.fromkeys(operator.template_fields, nested))
    task.render_template_fields({"task": task, "value": "rendered"})
    # A mapping that is a definition is left as it is; only paths beside it are rendered.
    for name in set(rendered_fields(operator)) - {*getattr(operator, "definition_fields", ())}:
        assert revealed(getattr(task, name)) == {"list": ["rendered"], "mapping": {"key": "rendered"}}


@every_operator
def test_the_constructor_only_assigns_what_templates_change(operator):
    fields = {name: f"{{{{ {name} }}}}" for name in operator.template_fields}
    task = operator(task_id="task", **fields)
    assert {name: getattr(task, name) for name in fields} == fields


@every_operator
def test_its_signature_names_every_argument(operator):
    assert set(own_arguments(operator)) == arguments_of_bases(operator)


@every_operator
def test_arguments_are_checked_when_the_dag_file_is_read(operator):
    fields = dict.fromkeys(operator.template_fields, "{{ value }}")
    assert operator.checks.keys() >= set(own_arguments(operator)) - fields.keys()
    for name in operator.checks:
        wrong: Any = {name: "nonsense"}
        with pytest.raises(ServiceInputError, match=f"^{name} .*'nonsense'"):
            operator(task_id="task", **{**fields, **wrong})
        with pytest.raises(ServiceInputError, match=f"^{name} .*'nonsense'"):
            operator.partial(task_id="task", **wrong)


@every_operator
def test_a_subclass_may_make_a_template_field_of_anything(operator):
    templates = dict.fromkeys(own_arguments(operator), "{{ value }}")
    shared = {name: value for name, value in templates.items() if name != "service_conn_id"}
    subclass = type("Own", (operator,), {"template_fields": (*operator.template_fields, *operator.checks)})
    task = subclass(task_id="task", **templates)
    with DAG("dag", schedule=None):
        subclass.partial(task_id="mapped", **shared).expand(service_conn_id=["one", "two"])
    task.render_template_fields({"task": task, "value": "rendered"})
    if operator.checks:
        with pytest.raises(AirflowFailException, match="'rendered'"):
            task.execute({"ti": Mock(), "task": task})


@every_operator
def test_it_can_be_mapped_over_each_template_field(operator):
    for name in operator.template_fields:
        same: dict[str, Any] = dict.fromkeys((one for one in given_together(operator, name) if one != name), "same")
        with DAG("dag", schedule=None):
            mapped = operator.partial(task_id="task", **same).expand(**{name: ["one", "two"]})
        task = mapped.unmap({name: "{{ value }}"})
        task.render_template_fields({"task": task, "value": "two"})
        assert isinstance(task, operator)
        assert revealed(getattr(task, name)) == ("two" if name in rendered_fields(operator) else "{{ value }}")


@every_operator
def test_its_buttons_are_registered(operator):
    assert operator.operator_extra_links
    for link in operator.operator_extra_links:
        assert isinstance(link, ServiceLink)
        kind = type(link)
        assert f"{kind.__module__}.{kind.__name__}" in get_provider_info()["extra-links"]


@every_operator
def test_its_documentation_describes_the_result(operator):
    text = inspect.cleandoc(operator.__doc__)
    assert ":returns:" in text
    assert "epeat" in text, "whether it is safe to repeat"


@every_operator
def test_its_result_has_a_type_that_is_documented(operator):
    kind = result_type(operator)
    if operator is not ServiceOperator:  # returns what the method returns
        assert is_typeddict(kind)
        assert f":class:`{kind.__name__}`" in inspect.cleandoc(operator.__doc__).partition(":returns:")[2]


@every_operator
def test_its_documentation_names_every_argument(operator):
    bases = described_bases(operator)
    texts = [inspect.cleandoc(kind.__doc__) for kind in (operator, *bases)]
    described = [name for text in texts for name in re.findall(r"^:param (?!kwargs)(\w+):", text, re.MULTILINE)]
    assert sorted(described) == sorted(own_arguments(operator))
    assert all(f":class:`{base.__name__}`" in texts[0] for base in bases)


@pytest.mark.slow(one_in=5)
@every_operator
def test_a_template_that_renders_to_nothing_is_refused(operator):
    for name in operator.template_fields:
        if name not in operator.blank_fields:
            others = dict.fromkeys(given_together(operator, name), "given")
            task = operator(task_id="task", **{**others, name: " {{ nothing }} " if name != "definition" else " "})
            context: Any = {"ti": Mock(), "task": task}
            task.render_template_fields(context)
            with pytest.raises(AirflowFailException, match=f"^{name} is empty"):
                task.execute(context)


@every_operator
def test_a_call_without_context_says_what_is_missing(operator):
    task = operator(task_id="task", **dict.fromkeys(given_together(operator), "x"))
    with pytest.raises(AirflowFailException, match=r"the context lacks 'ti'.*run_task.*ServiceHook.*nothing was done"):
        task.execute({})


def test_only_the_value_of_a_variable_may_be_empty():
    assert {name for operator in OPERATORS for name in operator.blank_fields} == {"value"}
