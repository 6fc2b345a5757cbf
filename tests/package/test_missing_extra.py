"""Without the extra ``simulator``, its import says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORTS = (
    "from airflow_provider_service.simulator import ServiceSimulator",
    "import airflow_provider_service.simulator.__main__",
)


@pytest.mark.parametrize("missing", ["uvicorn", "starlette"])
@pytest.mark.parametrize("statement", IMPORTS)
def test_the_extra_is_named(statement: str, missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None\n{statement}"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)

    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(f"the simulator needs {missing}: pip install 'airflow-provider-service[simulator]'")
