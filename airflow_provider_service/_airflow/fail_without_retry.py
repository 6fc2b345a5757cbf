"""Fail a task so that Airflow does not retry it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceError


@contextmanager
def fail_without_retry() -> Iterator[None]:
    """Turn errors that would recur into failures that Airflow does not retry.

    :raises AirflowFailException: the error raised within is final.
    """
    try:
        yield
    except ServiceError as error:
        if error.final:
            raise AirflowFailException(str(error)) from error
        raise
