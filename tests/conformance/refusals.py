"""One well-formed call for each operation, to see it refused: no scope, no license, not in this generation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._http.answers import since
from airflow_provider_service.client.errors import ServiceApiError, ServiceNotOfferedError
from tests.client.calling import C, P, T, U, V, W
from tests.client.contract import CONTRACT
from tests.client.operation_calls import CALLS

from .expecting import NO_ID, NO_UUID
from .target import Target, blank

_CALLS = {call.operation: call for call in CALLS}

# The ids of the table are there to be encoded; a server that checks their form must let these through.
_WELL_FORMED = {C: NO_ID, P: NO_ID, T: NO_ID, W: NO_ID, U: NO_UUID, V: NO_UUID}


def call(client: ServiceClient, operation: str) -> Any:
    """Call an operation with arguments that are well-formed and name nothing that exists."""
    row = _CALLS[operation]
    resource, method = row.calls.split(".")
    args = [_WELL_FORMED.get(value, value) if isinstance(value, str) else value for value in row.args]
    result = getattr(getattr(client, resource), method)(*args, **row.options)
    return list(result) if isinstance(result, Iterator) else result


def check_refusal(target: Target, operation: str, error: type[ServiceApiError], key: str = "") -> ServiceApiError:
    """Check that an operation is refused with exactly this error.

    :param key: key to call it with; the one with all scopes when empty.
    """
    with pytest.raises(error) as caught:
        call(target.client_for(key) if key else target.client, operation)
    assert type(caught.value) is error
    if error is ServiceNotOfferedError:
        assert f"n8n offers it from {version_of(operation)} on" in str(caught.value)
    return caught.value


def version_of(operation: str) -> str | None:
    """The version that added an operation, or a parameter of it, as the client knows it; None if all have it."""
    name, _, parameter = operation.partition("?")
    fact = CONTRACT[name]
    return since(fact["method"], blank(fact["path"]), parameter or None)
