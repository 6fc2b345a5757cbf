"""The tasks of the chaos test, and checks of the service's contents after all of them have ended."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.task_run import StateStore, TaskRun
from tests.runs.workflows import DONE, WITH_ID, held, put, respond, started_with, wait, webhook

#: Tasks that share a workflow, so that their executions are interleaved.
TASKS_PER_WORKFLOW = 10
RUN_SECONDS = 0.2
#: Only ends a hang: on a busy machine, nothing may answer within the second that these tasks have, for minutes.
RETRIES = 300
ROWS = 40

#: Every way in which a webhook answers, by its webhook node and the nodes after it.
MODES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "at once": ({}, [wait(RUN_SECONDS)]),
    "at once with the id": ({"options": {"responseData": WITH_ID}}, [wait(RUN_SECONDS)]),
    "by the last node": ({"mode": "lastNode"}, [wait(RUN_SECONDS)]),
    "by a Respond node": ({"mode": "responseNode"}, [respond(), wait(RUN_SECONDS)]),
    "by a Respond node with the id": (
        {"mode": "responseNode"},
        [respond(respondWith="json", responseBody=WITH_ID), wait(RUN_SECONDS)],
    ),
}


class ChaosTask(ABC):
    """One task run.

    :param number: number among tasks of its kind; determines what it does.
    :param simulator: the service.
    :param shared: values shared with other tasks on that service, created by the first of them.
    """

    def __init__(self, number: int, simulator: ServiceSimulator, shared: dict[str, str], dice: random.Random) -> None:
        self.number, self.simulator, self.dice = number, simulator, dice
        self.group = str(number // TASKS_PER_WORKFLOW)
        self.prepare(shared)

    @abstractmethod
    def prepare(self, shared: dict[str, str]) -> None:
        """Set up what the task needs."""

    @abstractmethod
    def run(self, folder: Path) -> TaskRun:
        """The task run, as Airflow would make it."""

    #: Whether the task is run once more without faults, because a call may take effect after the task has ended.
    runs_again = False

    @abstractmethod
    def faults(self, returned: dict[str, Any]) -> list[str]:
        """Describe what is wrong with the service's contents.

        :param returned: value returned by the attempt that succeeded.
        """

    def _run(self, operator: type[Any], folder: Path, **arguments: Any) -> TaskRun:
        store = StateStore(folder / f"{operator.__name__}.{self.number}.json") if self.number % 2 else None
        return TaskRun(operator, arguments, store=store, retries=RETRIES, max_tries=RETRIES, map_index=self.number)

    def _wait(self) -> dict[str, Any]:
        return {"poll_interval": 0.1, "timeout": 120.0, "deferrable": self.dice.random() < 0.5}


class RunTask(ChaosTask):
    """Runs a workflow."""

    def prepare(self, shared: dict[str, str]) -> None:
        mode = list(MODES)[int(self.group) % len(MODES)]
        if self.group not in shared:
            options, nodes = MODES[mode]
            shared[self.group] = put(self.simulator, webhook(f"chaos-{self.group}", **options), *nodes, DONE)
        self.workflow_id = shared[self.group]

    def run(self, folder: Path) -> TaskRun:
        return self._run(
            ServiceRunWorkflowOperator,
            folder,
            workflow_id=self.workflow_id,
            payload={"n": self.number},
            **self._wait(),
        )

    def faults(self, returned: dict[str, Any]) -> list[str]:
        mine = [one for one in held(self.simulator, self.workflow_id) if started_with(one)["body"]["n"] == self.number]
        return _wrong_with(mine, returned)


class RetryTask(ChaosTask):
    """Lets the service retry an execution that failed."""

    def prepare(self, shared: dict[str, str]) -> None:
        if self.group not in shared:
            shared[self.group] = put(self.simulator, webhook(f"retried-{self.group}"), wait(RUN_SECONDS), DONE)
        self.workflow_id = shared[self.group]
        self.original = self.simulator.start_execution(self.workflow_id, status="error")

    def run(self, folder: Path) -> TaskRun:
        return self._run(ServiceRetryExecutionOperator, folder, execution_id=self.original, **self._wait())

    def faults(self, returned: dict[str, Any]) -> list[str]:
        mine = [one for one in held(self.simulator, self.workflow_id) if one.retry_of == int(self.original)]
        return _wrong_with(mine, returned)


class UpsertTask(ChaosTask):
    """Upserts rows into its own table: a third of them new, a third changed, a third unchanged."""

    runs_again = True

    def prepare(self, shared: dict[str, str]) -> None:
        with self._client() as client:
            columns = [{"name": "sku", "type": "string"}, {"name": "stock", "type": "number"}]
            self.table_id = client.data_tables.create(f"chaos {self.number}", columns).id
            before = [{"sku": f"s{n}", "stock": n + n % 3 - 1} for n in range(ROWS) if n % 3]
            client.data_table_rows.insert(self.table_id, before)

    def run(self, folder: Path) -> TaskRun:
        return self._run(
            ServiceUpsertRowsOperator, folder, data_table_id=self.table_id, rows=self._rows(), key_columns="sku"
        )

    def faults(self, returned: dict[str, Any]) -> list[str]:
        with self._client() as client:
            there = sorted((row["sku"], row["stock"]) for row in client.data_table_rows.list(self.table_id))
        wanted = sorted((row["sku"], row["stock"]) for row in self._rows())
        return [] if there == wanted else [f"the table holds {len(there)} rows, {len(set(there) - set(wanted))} wrong"]

    def _rows(self) -> list[dict[str, Any]]:
        return [{"sku": f"s{n}", "stock": n} for n in range(ROWS)]

    def _client(self) -> ServiceClient:
        return ServiceClient(ServiceConfig(base_url=self.simulator.base_url, api_key=self.simulator.api_key))


def _wrong_with(executions: list[Any], returned: dict[str, Any]) -> list[str]:
    if not executions:
        return ["LOST: no execution was made"]
    if len(executions) > 1:
        return [f"DOUBLED: executions {', '.join(f'{one.id} ({one.status})' for one in executions)}"]
    [one] = executions
    if str(one.id) != returned["execution_id"]:
        return [f"WRONG ID: {returned['execution_id']} was returned, {one.id} was made"]
    return [] if one.status == "success" else [f"execution {one.id} is {one.status}"]
