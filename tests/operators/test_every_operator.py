"""What holds for every operator: its fields render, it can be mapped, it checks nothing early, it is documented."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_provider_service.get_provider_info import get_provider_info
from airflow_provider_service.links import ServiceLink
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.operators._rendering import revealed


def public_operators() -> list[type[ServiceBaseOperator]]:
    [listed] = get_provider_info()["operators"]
    return [
        member
        for name in listed["python-modules"]
        for _, member in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if issubclass(member, ServiceBaseOperator) and member.__module__ == name and not member.__name__.startswith("_")
    ]


README = Path(__file__).resolve().parents[2] / "README.md"
OPERATORS = public_operators()
every_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)

#: Arguments whose attribute has another name, since Airflow or the operator's own methods hold the argument's.
RENAMED = {"dry_run": "only_preview", "output": "wanted_output"}


def rendered_fields(operator: type[ServiceBaseOperator]) -> list[str]:
    """The template fields whose texts are templates."""
    return [name for name in operator.template_fields if name not in getattr(operator, "verbatim_fields", ())]


def own_arguments(operator: type[ServiceBaseOperator]) -> list[str]:
    """The arguments that the operator adds to Airflow's."""
    return [
        parameter.name
        for kind in operator.__mro__
        if kind.__module__.startswith("airflow_provider_service") and "__init__" in vars(kind)
        for parameter in inspect.signature(vars(kind)["__init__"]).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]


class Anything:
    """A value that no check can make sense of, as what a mapped task holds before it is expanded."""

    def __repr__(self) -> str:
        raise AssertionError("looked at before the task runs")

    __bool__ = __eq__ = __len__ = __iter__ = __repr__  # type: ignore[assignment]
    __hash__ = object.__hash__


def test_the_readme_names_every_operator_once():
    _, _, rest = README.read_text().partition("\n## Operators\n")
    section, _, _ = rest.partition("\n## ")
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    named = re.findall(r"`(Service\w*)`", "".join(first_cells))
    assert sorted(named) == sorted(operator.__name__ for operator in OPERATORS)
    assert len(set(named)) == len(named)


@every_operator
def test_every_template_field_is_an_argument_that_renders(operator):
    assert len(set(operator.template_fields)) == len(operator.template_fields)
    assert set(operator.template_fields) <= set(own_arguments(operator))
    task = operator(task_id="task", **dict.fromkeys(own_arguments(operator), "{{ value }}"))
    task.render_template_fields({"task": task, "value": "rendered"})
    assert {revealed(getattr(task, name)) for name in rendered_fields(operator)} == {"rendered"}


@every_operator
def test_templates_in_lists_and_mappings_render(operator):
    nested = {"list": ["{{ value }}"], "mapping": {"key": "{{ value }}"}}
    task = operator(task_id="task", **dict.fromkeys(own_arguments(operator), nested))
    task.render_template_fields({"task": task, "value": "rendered"})
    for name in rendered_fields(operator):
        assert revealed(getattr(task, name)) == {"list": ["rendered"], "mapping": {"key": "rendered"}}


@every_operator
def test_the_constructor_only_assigns(operator):
    values = {name: Anything() for name in own_arguments(operator) if name not in operator.template_fields}
    fields = {name: f"{{{{ {name} }}}}" for name in operator.template_fields}
    task = operator(task_id="task", **values, **fields)
    for name, value in {**values, **fields}.items():
        assert getattr(task, RENAMED.get(name, name)) is value


@every_operator
def test_it_can_be_mapped_over_each_template_field(operator):
    others: dict[str, Any] = dict.fromkeys(own_arguments(operator), "same")
    for name in operator.template_fields:
        same = {key: value for key, value in others.items() if key != name}
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
def test_its_documentation_names_every_argument_and_the_result(operator):
    ours = [kind for kind in operator.__mro__ if kind.__module__.startswith("airflow_provider_service")]
    text = "\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in ours)
    inherited = set(own_arguments(ServiceBaseOperator))
    missing = [name for name in own_arguments(operator) if name not in inherited and f":param {name}:" not in text]
    assert not missing
    unknown = [line for line in text.splitlines() if line.startswith(":param ")]
    assert {line.split()[1].rstrip(":") for line in unknown} <= set(own_arguments(operator))
    assert ":returns:" in text
    assert "epeat" in text, "whether it is safe to repeat"


@every_operator
def test_a_template_that_renders_to_nothing_is_refused(operator):
    for name in operator.template_fields:
        if name not in operator.blank_fields:
            others = dict.fromkeys(own_arguments(operator), "given")
            task = operator(task_id="task", **{**others, name: " {{ nothing }} " if name != "definition" else " "})
            context: Any = {"ti": Mock(), "task": task}
            task.render_template_fields(context)
            with pytest.raises(AirflowFailException, match=f"^{name} is empty: give a value, or leave it out$"):
                task.execute(context)


def test_only_the_value_of_a_variable_may_be_empty():
    assert {name for operator in OPERATORS for name in operator.blank_fields} == {"value"}
