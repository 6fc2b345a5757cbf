"""Follow docs/start.md in an environment that holds an Airflow and nothing of this project: ``make test-matrix``.

Takes the folder of the environment's commands and that of the wheel. The server is the simulator, which runs beside it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator

ROOT = Path(__file__).resolve().parent.parent
GUIDE = Path(ROOT, "docs", "start.md").read_text()
README = Path(ROOT, "README.md").read_text()
WORKFLOW = "Nightly sync"


class FirstStepError(Exception):
    """A step did not do what the guide says."""


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def steps(airflow: tuple[int, ...]) -> Iterator[str]:
    """The commands of the guide for a version of Airflow, in their order.

    :raises FirstStepError: the guide no longer names one of them, or the README's first commands are others.
    """
    install, export, run = (block.strip() for block in blocks(GUIDE, "sh"))
    if blocks(README, "sh")[0].splitlines() != [install, export, run]:
        raise FirstStepError("The first commands of README.md are not those of docs/start.md.")
    doctor = "airflow service doctor" if airflow >= (3, 2) else "python -m airflow_provider_service doctor"
    migrate = "airflow db migrate"
    if missing := [command for command in (migrate, doctor) if f"`{command}`" not in GUIDE]:
        raise FirstStepError(f"docs/start.md does not name {missing}.")
    yield from (install, migrate, export, doctor, run)


def dag_file(airflow: tuple[int, ...]) -> str:
    """The DAG of the guide as a version of Airflow takes it."""
    (code,) = blocks(GUIDE, "python")
    if airflow >= (3,):
        return code
    (first_line,) = re.findall(r"On Airflow 2\.11, the first line is `(.*)`", GUIDE)
    return str(first_line) + code[code.index("\n") :]


def perform(command: str, environment: Mapping[str, str], home: Path) -> str:
    """Run a command outside of the checkout; returns what it prints.

    :raises FirstStepError: it failed.
    """
    print(f"$ {command}", flush=True)
    ran = subprocess.run(
        command, shell=True, cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    if ran.returncode:
        raise FirstStepError(f"{command!r} ended with {ran.returncode}:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}")
    return ran.stdout


def follow(commands: Path, wheels: Path, home: Path, simulator: ServiceSimulator) -> None:
    """Perform all steps, with the variable and then with a stored connection, and check what the server has seen.

    :raises FirstStepError: a step did not do what the guide says.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PIP_", "PYTHON"))},
        "AIRFLOW_HOME": str(home),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(wheels),
    }
    airflow = tuple(int(part) for part in perform("airflow version", environment, home).splitlines()[-1].split(".")[:2])
    Path(home, "dags").mkdir()
    Path(home, "dags", "first.py").write_text(dag_file(airflow))
    install, migrate, export, *use = steps(airflow)
    name, value = shlex.split(export)[1].split("=", 1)
    value = value.replace("your-key", quote(simulator.api_key, safe=""))
    value = value.replace("n8n.example.com", f"{urlsplit(simulator.base_url).netloc}/http")
    for command in (install, migrate):
        perform(command, environment, home)
    for command in use:
        perform(command, {**environment, name: value}, home)
    conn_id = name.removeprefix("AIRFLOW_CONN_").lower()
    perform(f"airflow connections add {conn_id} --conn-uri {shlex.quote(value)}", environment, home)
    for command in use:
        perform(command, environment, home)
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as client:
        seen = [execution.status for execution in client.executions.list()]
    if seen != ["success"] * 2:
        raise FirstStepError(f"The executions of the server are {seen}, not two successes.")
    check_wheel(wheels, perform("pip show airflow-provider-service", environment, home))


def check_wheel(wheels: Path, shown: str) -> None:
    """Check that the built wheel was installed, and not what an index has.

    :raises FirstStepError: another version is installed.
    """
    (wheel,) = wheels.glob("*.whl")
    wanted = f"Version: {wheel.name.split('-')[1]}"
    if wanted not in shown.splitlines():
        raise FirstStepError(f"Another version than that of {wheel.name} was installed:\n{shown}")


def main(commands: str, wheels: str) -> None:
    """Follow the guide."""
    with ServiceSimulator() as simulator, tempfile.TemporaryDirectory(prefix="first-steps-") as home:
        simulator.create_webhook_workflow(WORKFLOW, path="nightly-sync", active=True)
        try:
            follow(Path(commands), Path(wheels), Path(home), simulator)
        except FirstStepError as error:
            raise SystemExit(str(error)) from None
    print(f"All steps of docs/start.md work with the Airflow in {commands}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
