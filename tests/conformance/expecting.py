"""What many tests need: a unique name, and the exact refusal of a call by the server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from airflow_provider_service.client.errors import ServiceApiError

#: Ids of the right form that name nothing.
NO_ID = "0123456789abcdef"
NO_UUID = "01234567-89ab-4cde-8f01-23456789abcd"


def unique(prefix: str = "n") -> str:
    """A name of letters and digits that nothing else on the server has."""
    return f"{prefix}{secrets.token_hex(6)}"


def status_and_message(answer: requests.Response) -> tuple[int, str]:
    """What a test compares of a refusal that it receives without the client."""
    return answer.status_code, answer.json().get("message", "")


@contextmanager
def refused(error: type[ServiceApiError], message: str, status: int | None = None) -> Iterator[None]:
    """Expect exactly this error with this message of the server's, and this status where the error has several."""
    with pytest.raises(ServiceApiError) as caught:
        yield
    seen = (type(caught.value), caught.value.server_message)
    assert seen == (error, message)
    assert status in (None, caught.value.status)
