"""The page of errors agrees with the attributes of each class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.simulator import ServiceSimulator

from .error_examples import activate

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "errors.md"
#: Base classes, which are never raised themselves.
BASES = {errors.ServiceError, errors.ServiceApiError}
#: The attribute that each column of the page describes.
COLUMNS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "repeated": ("repeat_may_help", lambda value: value is True),
    "may have acted": ("not_processed", lambda value: value is False),
    "ends a wait": ("ends_wait", lambda value: value is True),
    "Airflow retries": ("final", lambda value: value is False),
}


def all_below(kind: type[errors.ServiceError]) -> Iterator[type[errors.ServiceError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from all_below(child)


def rows() -> Iterator[tuple[str, dict[str, str]]]:
    """The name of each error on the page, and its cells by column."""
    columns: list[str] = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        columns = cells if cells and not columns else columns if cells else []
        if cells and (name := re.fullmatch(r"`(Service\w+Error)`", cells[0])):
            yield name[1], dict(zip(columns, cells, strict=True))


CLASSES = {kind.__name__: kind for kind in all_below(errors.ServiceError) if kind.__module__ == errors.__name__}
ROWS = list(rows())


def test_every_exception_has_one_row() -> None:
    assert Counter(name for name, _ in ROWS) == Counter(kind.__name__ for kind in {*CLASSES.values()} - BASES)


def test_every_exception_is_a_service_error() -> None:
    defined = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)}

    assert defined == set(CLASSES.values())


@pytest.mark.parametrize(("name", "cells"), ROWS, ids=[name for name, _ in ROWS])
def test_a_row_says_what_the_class_says(name: str, cells: dict[str, str]) -> None:
    assert all(cells.values())
    assert "Airflow retries" in cells
    for column, (attribute, means_yes) in COLUMNS.items():
        value = getattr(CLASSES[name], attribute)
        word = cells.get(column)
        if isinstance(value, property):
            assert word is not None
            assert word.startswith("depends: ")
        elif word is not None:
            assert word == ("yes" if means_yes(value) else "no"), column


def test_only_a_call_needs_all_columns() -> None:
    assert {name for name, cells in ROWS if not COLUMNS.keys() <= cells.keys()} == {
        "ServiceDeploymentError",
        "ServiceExecutionFailedError",
        "ServiceInsertInDoubtError",
        "ServiceRunInDoubtError",
        "ServiceRunNotKeptError",
        "ServiceRunNotStartedError",
        "ServiceTaskKilledError",
        "ServiceUnhealthyError",
        "ServiceWaitError",
    }


def test_the_example_follows_the_rule(simulator: ServiceSimulator) -> None:
    workflow = simulator.create_webhook_workflow("w", path="w", active=False)
    activate.function(workflow["id"])
    assert simulator.state.workflows.get(workflow["id"]).active

    with pytest.raises(errors.ServiceNotFoundError):
        activate.function("none")
    simulator.inject("status", status=400)
    with pytest.raises(AirflowFailException, match="the request was refused"):
        activate.function(workflow["id"])
