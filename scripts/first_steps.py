"""Follow docs/start.md in an environment that holds an Airflow and nothing of this project: ``make test-matrix``.

Then use ``airflow standalone`` as users do. Takes the folder of the environment's commands, that of the wheel, and the
file of the table that tells which steps work. The server is the simulator, which runs beside it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from scripts.standalone import MAPPED_FILE, FirstStepError, by_the_form, perform
from tests.runs.workflows import held

ROOT = Path(__file__).resolve().parent.parent
GUIDE = Path(ROOT, "docs", "start.md").read_text()
README = Path(ROOT, "README.md").read_text()
WORKFLOW = "Nightly sync"
#: Of the table; all but the first two are steps.
COLUMNS = ("Airflow", "Python", "guide", "standalone", "form", "doctor", "first DAG", "mapped over 5", "pages")


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


def dag_file(airflow: tuple[int, ...], code: str = blocks(GUIDE, "python")[0]) -> str:
    """A DAG file as a version of Airflow takes it, by default that of the guide."""
    if airflow >= (3,):
        return code
    (first_line,) = re.findall(r"On Airflow 2\.11, the first line is `(.*)`", GUIDE)
    return str(first_line) + code[code.index("\n") :]


def follow(
    airflow: tuple[int, ...], environment: Mapping[str, str], wheels: Path, simulator: ServiceSimulator
) -> tuple[str, str]:
    """Perform all steps, with the variable and then with a stored connection, and check what the server has seen.

    :returns: the id of the connection, and the command that examines one.
    :raises FirstStepError: a step did not do what the guide says.
    """
    install, migrate, export, *use = steps(airflow)
    name, value = shlex.split(export)[1].split("=", 1)
    value = value.replace("your-key", quote(simulator.api_key, safe=""))
    value = value.replace("n8n.example.com", f"{urlsplit(simulator.base_url).netloc}/http")
    for command in (install, migrate):
        perform(command, environment)
    for command in use:
        perform(command, {**environment, name: value})
    conn_id = name.removeprefix("AIRFLOW_CONN_").lower()
    perform(f"airflow connections add {conn_id} --conn-uri {shlex.quote(value)}", environment)
    for command in use:
        perform(command, environment)
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as client:
        seen = [execution.status for execution in client.executions.list()]
    if seen != ["success"] * 2:
        raise FirstStepError(f"The executions of the server are {seen}, not two successes.")
    check_wheel(wheels, perform("pip show airflow-provider-service", environment))
    return conn_id, use[0]


def check_wheel(wheels: Path, shown: str) -> None:
    """Check that the built wheel was installed, and not what an index has.

    :raises FirstStepError: another version is installed.
    """
    (wheel,) = wheels.glob("*.whl")
    wanted = f"Version: {wheel.name.split('-')[1]}"
    if wanted not in shown.splitlines():
        raise FirstStepError(f"Another version than that of {wheel.name} was installed:\n{shown}")


def take_all(commands: Path, wheels: Path, folder: Path, row: dict[str, str]) -> None:
    """Follow the guide, and then use ``airflow standalone``; write into the row how each step ended."""

    @contextmanager
    def step(name: str) -> Iterator[None]:
        began, row[name] = time.monotonic(), "FAILED"
        yield
        row[name] = f"ok, {time.monotonic() - began:.0f} s"

    def home(name: str) -> dict[str, str]:
        dags = Path(folder, name, "dags")
        dags.mkdir(parents=True)
        Path(dags, "first.py").write_text(dag_file(airflow))
        return {**environment, "AIRFLOW_HOME": str(dags.parent)}

    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PIP_", "PYTHON"))},
        "AIRFLOW_HOME": str(folder),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(wheels),
    }
    row["Python"] = perform("python --version", environment).split()[1]
    row["Airflow"] = perform("airflow version", environment).splitlines()[-1]
    airflow = tuple(int(part) for part in row["Airflow"].split(".")[:2])
    with ServiceSimulator() as simulator:
        workflow_id = simulator.create_webhook_workflow(WORKFLOW, path="nightly-sync", active=True)["id"]
        with step("guide"):
            conn_id, doctor = follow(airflow, home("guide"), wheels, simulator)
        lived_in = home("standalone")
        Path(lived_in["AIRFLOW_HOME"], "dags", "mapped.py").write_text(dag_file(airflow, MAPPED_FILE))
        url, key = re.findall(r"^\| ([A-Z][\w ]+) \| ", GUIDE, re.MULTILINE)
        if airflow == (3, 0):
            [(url, key)] = re.findall(r"Airflow 3\.0 without FAB calls them (\w+) and (\w+)\.", GUIDE)
        connection = {"connection_id": conn_id, "conn_type": "n8n", url: simulator.base_url, key: simulator.api_key}
        dag_id = blocks(GUIDE, "sh")[2].split()[-1]
        by_the_form(airflow, lived_in, step, simulator, first=(dag_id, WORKFLOW), connection=connection, doctor=doctor)
        if (count := len(held(simulator, workflow_id))) != 3:
            raise FirstStepError(f"{WORKFLOW!r} ran {count} times, not once for each of three tasks.")


def main(commands: str, wheels: str, table: str) -> None:
    """Take all first steps, and append a row about them to a table, with a head if it is new."""
    row = dict.fromkeys(COLUMNS, "")
    try:
        with tempfile.TemporaryDirectory(prefix="first-steps-") as folder:
            take_all(Path(commands), Path(wheels), Path(folder), row)
    except FirstStepError as error:
        raise SystemExit(str(error)) from None
    finally:
        head, line = (f"| {' | '.join(cells)} |" for cells in (COLUMNS, row.values()))
        print(head, line, sep="\n")
        with Path(table).open("a") as file:
            file.write(line + "\n" if file.tell() else f"{head}\n|{'---|' * len(COLUMNS)}\n{line}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
