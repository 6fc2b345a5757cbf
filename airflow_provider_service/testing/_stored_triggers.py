"""Pass triggers through Airflow's database to a triggerer, and their events back to the task."""

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


async def first_event(trigger: BaseTrigger) -> Any:
    """Return the payload of a trigger's first event, as it arrives at the task.

    :raises AssertionError: the trigger ends without an event.
    """
    async for event in trigger.run():
        return as_xcom(event.payload)
    raise AssertionError("the trigger ended without an event")


def as_xcom(value: Any) -> Any:
    """Return a value after its way through the database.

    :raises TypeError: Airflow cannot store the value.
    """
    return deserialize(json.loads(json.dumps(serialize(value))))
