"""Which failures of a task Airflow does not retry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceError


@contextmanager
def failing_at_once() -> Iterator[None]:
    """Turn the errors that a retry would meet again into failures that are not retried.

    :raises AirflowFailException: what was raised within is final.
    """
    try:
        yield
    except ServiceError as error:
        if error.final:
            raise AirflowFailException(str(error)) from error
        raise
