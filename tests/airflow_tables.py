"""The tables of Airflow into which tests put rows; some have other columns from Airflow 3.4 on."""

from __future__ import annotations

import uuid
from typing import Any

from airflow.models import xcom
from airflow.models.taskinstance import TaskInstance

#: Whether each attempt of a task is a row of its own, to which its XComs belong.
ATTEMPTS_ARE_INSTANCES = hasattr(TaskInstance, "working_set")


def xcoms() -> Any:
    """The table of XComs, which is a view of two tables from Airflow 3.4 on."""
    names = ("XComModelV2",) if ATTEMPTS_ARE_INSTANCES else ("XComModel", "BaseXCom")  # the latter on Airflow 2.11
    return next(getattr(xcom, name) for name in names if hasattr(xcom, name)).__table__


def new_id() -> Any:
    """An id of a task instance, which is a text before Airflow 3.2."""
    return uuid.uuid4() if TaskInstance.__table__.c.id.type.python_type is uuid.UUID else str(uuid.uuid4())


def key_in(table: Any, key: dict[str, Any]) -> dict[str, Any]:
    """A key of a task instance, by the columns of a table."""
    index = "map_index" if "map_index" in table.c else "region_index"
    return {index if name == "map_index" else name: value for name, value in key.items()}
