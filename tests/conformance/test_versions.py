"""The version that a refusal names is the one whose published contract has what was refused."""

from __future__ import annotations

from airflow_provider_service.client._http.answers import _SINCE
from tests.client.contract import CONTRACT

from .refusals import version_of
from .target import Target, blank

NAMES = {f"{fact['method']} {blank(fact['path'])}": name for name, fact in CONTRACT.items()}
#: Parameters, as in ``list_executions?startedAfter``.
PARAMETERS = [
    f"{NAMES[operation]}?{parameter}" for operation, _, parameter in (one.partition("?") for one in _SINCE) if parameter
]


def test_operations_and_parameters_are_there_from_that_version_on(service: Target) -> None:
    asked = [*CONTRACT, *PARAMETERS]
    offered = {name: service.offers(name) for name in asked}
    assert offered == {name: numbers(version_of(name) or "0.0") <= numbers(service.version) for name in asked}


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")[:2]]
