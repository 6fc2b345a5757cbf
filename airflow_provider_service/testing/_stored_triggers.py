"""Triggers that pass through Airflow's database to a triggerer, and their events on the way back."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from airflow.triggers.base import BaseTrigger

try:
    from airflow.sdk.serde import deserialize, serialize
except ImportError:  # before Airflow 3.2
    from airflow.serialization.serde import deserialize, serialize  # type: ignore[no-redef,import-not-found,unused-ignore]

Stored = tuple[str, dict[str, Any]]


def as_stored(trigger: BaseTrigger) -> Stored:
    """A trigger as the database holds it: its class path and its arguments, which are JSON."""
    path, arguments = trigger.serialize()
    return path, json.loads(json.dumps(serialize(arguments)))


def from_stored(path: str, arguments: dict[str, Any]) -> Any:
    """The trigger as the triggerer recreates it from the database."""
    module, _, name = path.rpartition(".")
    restored: Any = deserialize(arguments)
    return getattr(import_module(module), name)(**restored)


def revived(trigger: BaseTrigger) -> Any:
    """The trigger after its way through the database."""
    return from_stored(*as_stored(trigger))


async def first_event(trigger: BaseTrigger) -> Any:
    """The payload of a trigger's first event, as it arrives at the task.

    :raises AssertionError: the trigger ends without an event.
    """
    async for event in trigger.run():
        return as_xcom(event.payload)
    raise AssertionError("the trigger ended without an event")


def as_xcom(value: Any) -> Any:
    """A value after its way through the database.

    :raises TypeError: Airflow cannot store it.
    """
    return deserialize(json.loads(json.dumps(serialize(value))))
