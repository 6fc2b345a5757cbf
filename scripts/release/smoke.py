"""Use an installed wheel: import all that Airflow lists of it, and run a workflow on its simulator.

Takes the version that must be installed. Airflow's home is that of the environment, and needs no database.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib import metadata

import airflow_provider_service
from airflow_provider_service.get_provider_info import get_provider_info

DISTRIBUTION = "airflow-provider-service"


def modules() -> list[str]:
    """The modules that Airflow lists of the provider."""
    info = get_provider_info()
    groups = [*info["hooks"], *info["operators"], *info["sensors"], *info["triggers"]]
    classes = [one["class-name"] for one in info["task-decorators"]] + info["notifications"] + info["extra-links"]
    transfers = [one["python-module"] for one in info["transfers"]]
    return (
        [name for group in groups for name in group["python-modules"]]
        + transfers
        + [name.rpartition(".")[0] for name in classes]
    )


def run_a_workflow() -> str:
    """Run a workflow as a deferrable task, and return how its execution ended."""
    from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
    from airflow_provider_service.simulator import ServiceSimulator
    from airflow_provider_service.testing import run_task

    with ServiceSimulator() as simulator:
        simulator.create_webhook_workflow("Nightly sync", path="nightly")
        os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"] = simulator.connection_json()
        task = ServiceRunWorkflowOperator(
            task_id="run", workflow_name="Nightly sync", deferrable=True, poll_interval=1, timeout=60
        )
        return str(run_task(task).return_value["status"])


def main(version: str) -> None:
    """Check the installation; raises what is wrong with it."""
    installed = metadata.version(DISTRIBUTION), airflow_provider_service.__version__
    if set(installed) != {version}:
        raise SystemExit(f"installed is {installed}, not {version}")
    for module in modules():
        importlib.import_module(module)
    if (status := run_a_workflow()) != "success":
        raise SystemExit(f"the execution ended as {status}")
    print(f"{version} works with Airflow {metadata.version('apache-airflow')}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
