"""Pass triggers through Airflow's database to a triggerer, and their events back to the task."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import timedelta
from importlib import import_module
from typing import Any

from airflow.triggers.base import BaseTrigger

from airflow_provider_service.client._clock import clock

try:
    from airflow.sdk.serde import deserialize, serialize
except ImportError:  # before Airflow 3.2
    from airflow.serialization.serde import deserialize, serialize  # type: ignore[no-redef,import-not-found,unused-ignore]

Stored = tuple[str, dict[str, Any]]


def as_stored(trigger: BaseTrigger) -> Stored:
    """Return a trigger as the database holds it: its class path, and its arguments as JSON."""
    path, arguments = trigger.serialize()
    return path, json.loads(json.dumps(serialize(arguments)))


def from_stored(path: str, arguments: dict[str, Any]) -> Any:
    """Recreate a trigger from the database, as the triggerer does."""
    module, _, name = path.rpartition(".")
    restored: Any = deserialize(arguments)
    return getattr(import_module(module), name)(**restored)


def revived(trigger: BaseTrigger) -> Any:
    """Return a trigger after its way through the database."""
    return from_stored(*as_stored(trigger))


class TooLateError(Exception):
    """A trigger had no event in time."""


async def first_event(trigger: BaseTrigger, limit: timedelta | None = None) -> Any:
    """Return the payload of a trigger's first event, as it arrives at the task.

    :param limit: how long the trigger may take; None for as long as it likes.
    :raises AssertionError: the trigger ends without an event.
    :raises TooLateError: it takes longer than the limit.
    """
    seconds, began = math.inf if limit is None else limit.total_seconds(), clock().now()
    try:
        # In real time, in which triggers of other providers wait.
        async with asyncio.timeout(None if limit is None else seconds) as real:
            async for event in trigger.run():
                if clock().now() - began > seconds:
                    raise TooLateError
                return as_xcom(event.payload)
    except TimeoutError:
        if not real.expired():
            raise
        raise TooLateError from None
    raise AssertionError("the trigger ended without an event")


def as_xcom(value: Any) -> Any:
    """Return a value after its way through the database.

    :raises TypeError: Airflow cannot store the value.
    """
    return deserialize(json.loads(json.dumps(serialize(value))))
