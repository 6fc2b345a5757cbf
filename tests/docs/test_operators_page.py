"""The page of operators and sensors is what the docstrings say."""

from __future__ import annotations

import pytest

from airflow_provider_service.operators.tags import ServiceCreateTagOperator
from scripts import operators
from scripts.site.api import api_pages, public_names


def test_the_page_lists_what_the_code_has() -> None:
    assert operators.PAGE.read_text().partition("\n## ")[2] == operators.tables().removeprefix("## ") + "\n", (
        "python -m scripts.operators --write renews docs/operators.md"
    )


@pytest.mark.parametrize("section", ["Operators", "Transfers", "Sensors", "Notifier"])
def test_every_public_class_has_a_row_with_its_module(section: str) -> None:
    wanted = {(name, page.name) for page in api_pages()[section] for name in public_names(page.modules[0])}

    assert {(row.split("`")[1], row.split("`")[3]) for row in operators.rows(section)} == wanted


def test_the_event_trigger_and_the_decorator_have_a_row_and_the_machinery_has_none() -> None:
    triggers, decorators = [*operators.rows("Triggers")], [*operators.rows("Task decorator")]

    assert [row.split("`")[1] for row in triggers + decorators] == [
        "ServiceExecutionEventTrigger",
        "@task.service_workflow",
    ]


def test_a_docstring_that_does_not_say_what_a_repeat_does_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServiceCreateTagOperator, "__doc__", "Create a tag. Quickly.")

    with pytest.raises(ValueError, match=r"operators\.tags\.ServiceCreateTagOperator has no sentence .*Safe to repeat"):
        operators.tables()
