"""A DAG file that imports an operator loads neither the HTTP library nor the client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_provider_service
from tests import airflow_features

PACKAGE = Path(airflow_provider_service.__file__).parent
KINDS = ("decorators", "notifications", "operators", "sensors", "transfers")
MODULES = [f"{kind}.{path.stem}" for kind in KINDS for path in sorted((PACKAGE / kind).glob("[!_]*.py"))]
MODULES += ["plugins.service", "triggers.events"]
FORBIDDEN = (
    "requests",
    "urllib3.connectionpool",
    "tenacity",
    "fsspec",
    "pyarrow",
    "sqlite3",
    "airflow_provider_service.client._http.transport",
    "airflow_provider_service.client._models",
    "airflow_provider_service.client.resources",
    "airflow_provider_service.hooks.service",
    "airflow_provider_service._core.pages",
    "airflow_provider_service._core.events.poll",
    "airflow_provider_service._core.events.poll",
    "airflow.triggers.shared_stream",
    "airflow_provider_service.plugins._",
)

#: Each costs a fraction of a millisecond in every DAG file that imports the operator.
MOST_OWN_MODULES = {
    "decorators": 29,
    "notifications": 10,
    "operators": 34,
    "plugins": 6,
    "sensors": 30,
    "transfers": 29,
    "triggers": 15,
}

PROGRAM = """
import importlib, os, sys
from airflow.providers.common.compat.sdk import BaseOperator
before = set(sys.modules)
for module in sys.argv[1:]:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        importlib.import_module(module)
        print(module, *sorted(set(sys.modules) - before), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
HEAVY = "airflow_provider_service.client._http.transport"


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """What importing each module loads over ``BaseOperator``, each in a process that has loaded nothing else."""
    modules = [*(f"airflow_provider_service.{name}" for name in MODULES), HEAVY]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *modules],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("airflow_provider_service.")]
    return {module: set(found) for module, *found in lines}


def test_the_modules_that_dag_files_import_are_examined():
    assert {"operators.generic", "operators.rows", "operators.workflows", "sensors.execution"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
@airflow_features.light_imports
def test_a_module_of_a_dag_file_is_light(loaded, name):
    found = loaded[f"airflow_provider_service.{name}"]
    assert f"airflow_provider_service.{name}" in found
    assert not [module for module in found if module.startswith(FORBIDDEN)]


@pytest.mark.parametrize("name", MODULES)
@airflow_features.light_imports
def test_a_module_of_a_dag_file_loads_few_others(loaded, name):
    found = loaded[f"airflow_provider_service.{name}"]
    own = [module for module in found if module.startswith("airflow_provider_service.")]
    assert len(own) <= MOST_OWN_MODULES[name.partition(".")[0]], sorted(own)


@airflow_features.light_imports
def test_heavy_imports_are_detected(loaded):
    assert {"requests", HEAVY} <= loaded[HEAVY]
