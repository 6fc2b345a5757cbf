"""Count the functions of the package that a task passes through, and the files that hold them.

``python -m scripts.passed_functions`` runs tasks on the simulator, in this process, and prints a table: how much a
reader has to follow to understand what one task does. With ``--list TASK`` it prints the functions instead, in the
order of their first calls, each indented by its depth. Counted are functions, methods and lambdas of the package, in
all threads; not counted are the simulator, the testing kit, comprehensions, and what importing a module calls.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from scripts.dag_runner import choose_home

if TYPE_CHECKING:
    from airflow_provider_service.testing._service import SimulatedService

PACKAGE = Path(__file__).resolve().parent.parent / "airflow_provider_service"
NOT_COUNTED = (str(PACKAGE / "simulator"), str(PACKAGE / "testing"))
CONNECTION = "service_default"
COLUMNS = {"sku": "string", "stock": "number"}


class Passed:
    """The functions that were called, in the order of their first calls."""

    def __init__(self) -> None:
        self.depths: dict[CodeType, int] = {}
        self.deepest = 0

    @property
    def files(self) -> set[str]:
        """The files that hold them."""
        return {code.co_filename for code in self.depths}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what this thread, and every thread that is started meanwhile, calls inside the block."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not _is_counted(frame.f_code):
            return
        depth = _depth(frame)
        self.deepest = max(self.deepest, depth)
        self.depths.setdefault(frame.f_code, depth)


def _is_counted(code: CodeType) -> bool:
    is_function = bool(code.co_flags & 0x2) and (code.co_name == "<lambda>" or not code.co_name.startswith("<"))
    return is_function and code.co_filename.startswith(str(PACKAGE)) and not code.co_filename.startswith(NOT_COUNTED)


def _depth(frame: FrameType) -> int:
    depth, caller = 0, frame
    while caller is not None:
        depth += _is_counted(caller.f_code)
        caller = caller.f_back  # type: ignore[assignment]
    return depth


def deferred_run(service: SimulatedService, number: int) -> Any:
    """A task that starts a workflow, waits for it in the triggerer, and returns its output."""
    from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

    workflow = service.workflow("Stock", output=[{"sku": "A"}], takes=60)
    return ServiceRunWorkflowOperator(
        task_id="run", workflow_id=workflow.id, payload={"number": number}, deferrable=True, return_output="last_node"
    )


def upsert(service: SimulatedService, number: int) -> Any:
    """A task that changes one row of a data table and inserts another."""
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.hooks.service import ServiceHook
    from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator

    with ServiceClient(ServiceHook(service.conn_id).config) as client:
        table = client.data_tables.create(
            f"stock{number}", [{"name": name, "type": kind} for name, kind in COLUMNS.items()]
        )
        client.data_table_rows.insert(table.id, [{"sku": "A", "stock": 1}])
    return ServiceUpsertRowsOperator(
        task_id="upsert",
        data_table_id=table.id,
        rows=[{"sku": "A", "stock": 2}, {"sku": "B", "stock": 3}],
        key_columns="sku",
    )


def deployment(_: SimulatedService, number: int) -> Any:
    """A task that creates a workflow by its definition and activates it."""
    from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
    from airflow_provider_service.simulator import _samples as samples

    begin = samples.trigger("webhook", f"stock{number}")
    definition = samples.scripted_workflow(f"Stock {number}", begin, seconds=0, output=None, error=None)
    return ServiceCreateOrUpdateWorkflowOperator(task_id="deploy", definition=definition, activate=True)


def deployment_of_two(_: SimulatedService, number: int) -> Any:
    """A task that creates two workflows from a folder."""
    from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator
    from airflow_provider_service.simulator import _samples as samples

    folder = Path(tempfile.mkdtemp(dir=os.environ["AIRFLOW_HOME"]))
    for name in (f"First {number}", f"Second {number}"):
        begin = samples.trigger("webhook", name.replace(" ", ""))
        definition = samples.scripted_workflow(name, begin, seconds=0, output=None, error=None)
        (folder / f"{name}.json").write_text(json.dumps(definition))
    return ServiceDeployWorkflowsOperator(task_id="deploy", source=str(folder))


def refused_call(_: SimulatedService, number: int) -> Any:
    """A task that names a workflow which does not exist."""
    from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator

    return ServiceActivateWorkflowOperator(task_id="activate", workflow_id=f"missing{number}")


TASKS: dict[str, Callable[[SimulatedService, int], Any]] = {
    "deferred run with output": deferred_run,
    "upsert": upsert,
    "deployment": deployment,
    "deployment of two workflows": deployment_of_two,
    "refused call": refused_call,
}


def passed_by(make: Callable[[SimulatedService, int], Any]) -> Passed:
    """What a task passes through. A first one, which is not recorded, imports whatever it needs."""
    from airflow_provider_service.client.errors import ServiceNotFoundError
    from airflow_provider_service.simulator import ServiceSimulator
    from airflow_provider_service.testing._passing_time import time_passes_at
    from airflow_provider_service.testing._service import SimulatedService
    from airflow_provider_service.testing._tasks import run_task

    passed = Passed()
    with ServiceSimulator() as simulator, time_passes_at(simulator):
        os.environ[f"AIRFLOW_CONN_{CONNECTION.upper()}"] = json.dumps(
            {**json.loads(simulator.connection_json()), "extra": {"mcp_api_key": simulator.mcp_api_key}}
        )
        service = SimulatedService(simulator, CONNECTION)
        for number, recorded in enumerate((Passed(), passed)):
            task = make(service, number)
            try:
                with recorded.recording():
                    run_task(task)
            except ServiceNotFoundError:
                if make is not refused_call:
                    raise
    return passed


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description="Count the functions of the package that tasks pass through.")
    parser.add_argument("--list", choices=TASKS, metavar="TASK", help=f"list the functions of one of: {list(TASKS)}")
    chosen = parser.parse_args().list
    with tempfile.TemporaryDirectory() as home:
        choose_home(Path(home), Path(home))
        logging.disable()
        if chosen is not None:
            for code, depth in passed_by(TASKS[chosen]).depths.items():
                place = f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno}"
                print(f"{'  ' * (depth - 1)}{code.co_qualname}  {place}")
            return
        print("| task | functions | files | depth |\n|---|---|---|---|")
        for name, make in TASKS.items():
            passed = passed_by(make)
            print(f"| {name} | {len(passed.depths)} | {len(passed.files)} | {passed.deepest} |", flush=True)


if __name__ == "__main__":
    main()
