"""What runs in processes that are killed. Imported once by the server that forks them."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from airflow_provider_service._core.runs import searching
from airflow_provider_service.testing._service import Stored, first_event, from_stored

from .task_run import TaskRun

#: Forks from a process that has imported all this and has no other threads.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        __name__,
        "airflow.sdk.execution_time.supervisor",
        # On Airflow 3.2 it reads a long list of metrics, for longer than a run lasts here.
        "airflow.sdk.observability.stats",
        "airflow_provider_service.client._lookup",
        "airflow_provider_service.client.resources._workflows",
        "airflow_provider_service.client.resources._executions",
        "airflow_provider_service.client.resources._workflows",
        "airflow_provider_service._core.runs.idempotent_start",
        "airflow_provider_service.client.resources._mcp",
        "airflow_provider_service.client._http.transport",
        "airflow_provider_service._core.rows.upsert",
        "airflow_provider_service.hooks._running",
        "airflow_provider_service.hooks.service",
        "airflow_provider_service.operators.executions",
        "airflow_provider_service.operators.rows",
        "airflow_provider_service.operators.run_workflow",
        "airflow_provider_service._core.waits.poller",
        "airflow_provider_service.transfers.data_table_to_sql",
        "airflow_provider_service.transfers.sql_to_data_table",
        "tests.rows.loading",
    ]
)

QUICK = {
    "ANSWER_PATIENCE_SECONDS": 0.05,
    "PATIENCE_AT_ONCE_SECONDS": 0.05,
    "SETTLING_SECONDS": 0.1,
    "VISIBLE_WITHIN_SECONDS": 0.5,
}


def attempt(
    environment: dict[str, str], run: TaskRun, number: int, constants: Mapping[str, float] = MappingProxyType(QUICK)
) -> None:
    """Execute an attempt as a worker does.

    :param constants: of the module that starts things.
    """
    set_up(environment, constants)
    run.attempt(number)


def wait_for_event(environment: dict[str, str], trigger: Stored, events: Path) -> None:
    """Run a trigger as a triggerer does, and write down its event."""
    set_up(environment)
    event: Any = asyncio.run(first_event(from_stored(*trigger)))
    with events.open("a") as file:
        file.write(json.dumps(event) + "\n")


def set_up(environment: dict[str, str], constants: Mapping[str, float] = MappingProxyType({})) -> None:
    """Make a forked process a worker: its connections, the times of its searches, and nothing printed."""
    for name, seconds in constants.items():
        setattr(searching, name, seconds)
    os.environ.update(environment)
    logging.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
