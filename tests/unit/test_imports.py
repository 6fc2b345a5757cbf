"""A DAG file that imports an operator loads neither the HTTP library nor the client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_provider_service

PACKAGE = Path(airflow_provider_service.__file__).parent
KINDS = ("notifications", "operators", "sensors")
MODULES = [f"{kind}.{path.stem}" for kind in KINDS for path in sorted((PACKAGE / kind).glob("[!_]*.py"))]
MODULES.append("triggers.events")
FORBIDDEN = (
    "requests",
    "urllib3.connectionpool",
    "tenacity",
    "airflow_provider_service.client.transport",
    "airflow_provider_service.client.models",
    "airflow_provider_service.client.resources",
    "airflow_provider_service.hooks.service",
)

PROGRAM = """
import sys
from airflow.sdk import BaseOperator
before = set(sys.modules)
import {module}
print(*sorted(set(sys.modules) - before))
"""


def loaded_by(module: str) -> set[str]:
    """The modules that an import loads over ``airflow.sdk.BaseOperator``."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    return set(done.stdout.splitlines()[-1].split())


def test_what_dag_files_import_is_looked_at():
    assert {"operators.generic", "operators.rows", "operators.workflows", "sensors.execution"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_a_dag_file_is_light(name):
    loaded = loaded_by(f"airflow_provider_service.{name}")
    assert f"airflow_provider_service.{name}" in loaded
    assert not [module for module in loaded if module.startswith(FORBIDDEN)]


def test_what_is_heavy_is_seen():
    assert {"requests", "airflow_provider_service.client.transport"} <= loaded_by(
        "airflow_provider_service.client.transport"
    )
