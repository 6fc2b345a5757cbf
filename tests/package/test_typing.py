"""Type checkers know the operators: correct code passes in strict mode, and misspelt arguments are found."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG

import airflow_provider_service

pytest.importorskip("mypy")  # a tool of development, not of the tests on every Airflow

CACHE = Path(__file__).resolve().parents[2] / ".mypy_cache" / "of-users"
RIGHT = Path(__file__).with_name("typed_dag.py")
#: Correct code, a mistake that a user could make instead, and mypy's message about it.
MISTAKES = {
    "misspelt": ('data_table_name="stock"', 'table_name="stock"', 'Unexpected keyword argument "table_name"'),
    "misspelt_of_airflow": ("retries=3", "retrys=3", 'Unexpected keyword argument "retrys"'),
    "misspelt_of_run": ("payload=", "payloads=", 'Unexpected keyword argument "payloads"'),
    "misspelt_of_sensor": ('mode="res', 'modus="res', 'Unexpected keyword argument "modus"'),
    "left_out": ('key_columns=["sku"],', "", 'Missing named argument "key_columns"'),
    "wrong_type": ("create_missing=False", 'create_missing="no"', 'Argument "create_missing"'),
    "wrong_word": ('name="stock", columns', 'name="stock", if_exists="replace", columns', 'Argument "if_exists"'),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy finds in each file, as for a user who has configured nothing."""
    folder = tmp_path_factory.mktemp("dags")
    text = RIGHT.read_text()
    files = {"right": text, **{name: text.replace(right, wrong) for name, (right, wrong, _) in MISTAKES.items()}}
    for name, content in files.items():
        (folder / f"{name}.py").write_text(content)
    # Reading Airflow takes ten seconds, and only the first time.
    options = ("--strict", "--config-file=", f"--cache-dir={CACHE}", "--no-error-summary", "--no-pretty")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(f"{name}.py" for name in files)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return {name: re.findall(rf"^{name}\.py:\d+: error: (.*)$", done.stdout, re.MULTILINE) for name in files}


@pytest.mark.slow
def test_a_dag_passes(errors):
    assert errors["right"] == []


def test_the_dag_is_one_that_airflow_reads():
    [dag] = [one for one in vars(importlib.import_module("tests.package.typed_dag")).values() if isinstance(one, DAG)]
    assert {"extract", "load", "read", "each"} <= set(dag.task_ids)


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(errors, name):
    right, _, message = MISTAKES[name]
    assert right in RIGHT.read_text()
    [error] = errors[name]
    assert error.startswith(message)


def test_the_package_is_marked_as_typed():
    assert Path(airflow_provider_service.__file__).with_name("py.typed").is_file()
