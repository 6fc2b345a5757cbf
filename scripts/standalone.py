"""Use the provider in ``airflow standalone``: a connection by the form, DAGs by the API, the pages of the provider."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_provider_service.simulator import ServiceSimulator
from tests.live.servers.errors import tail
from tests.live.servers.ports import free_ports
from tests.polling import wait_until
from tests.runs.workflows import held, started_with
from tests.stack.airflow_api import AirflowApi
from tests.stack.processes import Component

MAPPED = "first_steps_mapped"
ITEMS = list(range(5))
MAPPED_FILE = f"""from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("{MAPPED}", schedule=None):
    ServiceRunWorkflowOperator.partial(task_id="run", workflow_name="{MAPPED}", deferrable=True).expand(
        payload=[{{"item": item}} for item in {ITEMS}]
    )
"""
#: Prints that of which Airflow 2.11 builds its form.
BEHAVIOUR = (
    "python -c 'from airflow.providers_manager import ProvidersManager; import json; "
    'print(json.dumps(ProvidersManager().field_behaviours["n8n"]))\''
)
#: Within which Airflow must do what is waited for; only ends a hang.
SECONDS = 600
Step = Callable[[str], AbstractContextManager[None]]


class FirstStepError(Exception):
    """A step did not do what the guide says, or what a user expects."""


def perform(command: str, environment: Mapping[str, str]) -> str:
    """Run a command outside of the checkout; returns what it prints.

    :raises FirstStepError: it failed.
    """
    print(f"$ {command}", flush=True)
    ran = subprocess.run(
        command,
        shell=True,
        cwd=environment["AIRFLOW_HOME"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if ran.returncode:
        raise FirstStepError(f"{command!r} ended with {ran.returncode}:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}")
    return ran.stdout


class OldApi(AirflowApi):
    """The API of Airflow 2.11, which takes the password with each call."""

    root, health_path = "/api/v1", "/health"

    def log_in(self) -> str:
        """Use the password from now on."""
        self._session.auth = (self._user, self._password)
        return self._password


@contextmanager
def standalone(airflow: tuple[int, ...], environment: Mapping[str, str]) -> Iterator[AirflowApi]:
    """Run ``airflow standalone`` on free ports; yields its API for the user that it has created."""
    home = Path(environment["AIRFLOW_HOME"])
    port, *log_ports = map(str, free_ports(3))
    base_url = f"http://127.0.0.1:{port}"
    settings = {
        "CORE__LOAD_EXAMPLES": "False",
        "LOGGING__WORKER_LOG_SERVER_PORT": log_ports[0],
        "LOGGING__TRIGGER_LOG_SERVER_PORT": log_ports[1],
    }
    if airflow >= (3,):
        kind, password_file = AirflowApi, "simple_auth_manager_passwords.json.generated"
        settings |= {"API__PORT": port, "API__BASE_URL": base_url}
        # On a busy machine, several workers of the API server of 3.0 do not come up in time, and a task waits for it
        # longer than the five seconds after which it fails.
        settings |= {"API__WORKERS": "1", "WORKERS__EXECUTION_API_TIMEOUT": "120"}
    else:
        kind, password_file = OldApi, "standalone_admin_password.txt"
        settings["WEBSERVER__WEB_SERVER_PORT"] = port
        settings["API__AUTH_BACKENDS"] = "airflow.providers.fab.auth_manager.api.auth.backend.basic_auth"
    variables = {**environment, **{f"AIRFLOW__{name}": value for name, value in settings.items()}}
    variables["PYTHONUNBUFFERED"] = "1"  # it says at once that it is ready
    process = Component("standalone", ["airflow", "standalone"], folder=home, environment=variables)

    def is_ready() -> bool:
        process.check()
        return "Airflow is ready" in process.log.read_text(errors="replace")

    print("$ airflow standalone", flush=True)
    process.start()
    try:
        wait_until(is_ready, seconds=SECONDS, what="Airflow to be ready", interval=1)
        password = Path(home, password_file).read_text()
        api = kind(base_url, "admin", json.loads(password)["admin"] if airflow >= (3,) else password)
        wait_until(api.is_up, seconds=SECONDS, what="the API", interval=1)
        api.log_in()
        yield api
    except BaseException:
        print(tail(process.log, 100), file=sys.stderr)
        raise
    finally:
        process.end()


@contextmanager
def run_of(api: AirflowApi, dag_id: str) -> Iterator[str]:
    """Let Airflow run a DAG; yields the id of the run, and waits for its success in the end.

    :raises FirstStepError: it failed.
    """

    def is_read() -> bool:
        return dag_id in {dag["dag_id"] for dag in api.call("GET", "/dags")["dags"]}

    wait_until(is_read, seconds=SECONDS, what=f"Airflow to read {dag_id}", interval=1)
    api.unpause(dag_id)
    run_id = api.trigger(dag_id)
    yield run_id
    if (state := api.wait_for_run(dag_id, run_id, seconds=SECONDS)) != "success":
        raise FirstStepError(f"{dag_id} is {state}; its tasks: {api.tasks(dag_id, run_id)}")


def form(
    airflow: tuple[int, ...], api: AirflowApi, environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """The fields of the form of a connection to n8n by their titles, and what it stores in the extras."""
    as_json = {"timeout": 60}  # what somebody writes into the one field that there is for the extras
    if airflow < (3,):
        behaviour = json.loads(perform(BEHAVIOUR, environment).splitlines()[-1])
        return {title: name for name, title in behaviour["relabeling"].items()}, as_json
    (meta,) = (one for one in api.page("/ui/connections/hook_meta").json() if one["connection_type"] == "n8n")
    # Airflow 3.0 without FAB renames no field.
    standard = meta["standard_fields"] or {name: {"title": name.capitalize()} for name in ("host", "password")}
    titles = {field["title"]: name for name, field in standard.items() if field and field.get("title")}
    if airflow < (3, 2):
        return titles, as_json
    return titles, {name: field["value"] for name, field in meta["extra_fields"].items()}


def run_mapped(api: AirflowApi, simulator: ServiceSimulator) -> str:
    """Let five mapped tasks be deferred at the same time, and only then end what they wait for; returns the run's id.

    :raises FirstStepError: they do not succeed, or the workflow does not run once for each.
    """
    workflow_id = simulator.create_webhook_workflow(MAPPED, path="mapped", behaviour="waiting", seconds=86_400)["id"]
    with run_of(api, MAPPED) as run_id:

        def are_deferred() -> bool:
            states = [task.state for task in api.tasks(MAPPED, run_id)]
            if "failed" in states:
                raise FirstStepError(f"The mapped tasks are {states}.")
            return states == ["deferred"] * len(ITEMS)

        wait_until(are_deferred, seconds=SECONDS, what="five deferred tasks", interval=1)
        for execution in held(simulator, workflow_id):
            simulator.finish_execution(str(execution.id))
    states = [task.state for task in api.tasks(MAPPED, run_id)]
    items = sorted(started_with(execution)["body"]["item"] for execution in held(simulator, workflow_id))
    if (states, items) != (["success"] * len(ITEMS), ITEMS):
        raise FirstStepError(f"The mapped tasks are {states}; the workflow ran for the items {items}.")
    return run_id


def open_pages(api: AirflowApi, conn_id: str, runs: Mapping[str, tuple[str, str, list[int]]]) -> None:
    """Open each page of the provider that Airflow offers, and wait until it names what it is about.

    :param runs: by DAG, the id of a run, the name of the workflow, and the map indexes of its task.
    """
    (plugin,) = (one for one in api.call("GET", "/plugins", limit=100)["plugins"] if one["name"] == "service")
    views = {view["url_route"]: view["href"] for view in plugin["external_views"]}
    tab = views.pop("service_execution")
    pages = {
        views.pop("service_connections"): [conn_id],
        views.pop("service_executions"): [workflow for _, workflow, _ in runs.values()],
    }
    for dag_id, (run_id, workflow, map_indexes) in runs.items():
        tabs = [tab.replace("{TASK_ID}", "run").replace("{MAP_INDEX}", str(index)) for index in map_indexes]
        for href in (*tabs, *views.values()):
            pages[href.replace("{DAG_ID}", dag_id).replace("{RUN_ID}", quote(run_id, safe=""))] = [workflow]
    for href, names in pages.items():
        path = href.removeprefix(api.base_url)

        def is_complete(path: str = path, names: list[str] = names) -> bool:
            text = api.page(path).text
            return all(name in text for name in names)

        print(f"GET {path}", flush=True)
        wait_until(is_complete, seconds=60, what=f"{', '.join(names)} on {path}", interval=1)


def by_the_form(
    airflow: tuple[int, ...],
    environment: Mapping[str, str],
    step: Step,
    simulator: ServiceSimulator,
    *,
    first: tuple[str, str],
    connection: Mapping[str, str],
    doctor: str,
) -> None:
    """Perform all steps in a deployment whose DAGs folder holds the DAGs already.

    :param first: the id of the first DAG and the name of its workflow.
    :param connection: its id and type, and the values of the fields of the form by their titles.
    :raises FirstStepError: a step did not do what a user expects.
    """
    with ExitStack() as stack:
        with step("standalone"):
            api = stack.enter_context(standalone(airflow, environment))
        with step("form"):
            titles, extra = form(airflow, api, environment)
            fields = {titles.get(title, title): value for title, value in connection.items()}
            api.set_connection({**fields, "extra": json.dumps(extra)})
        with step("doctor"):
            perform(doctor, environment)
        with step("first DAG"), run_of(api, first[0]) as run_id:
            pass
        with step("mapped over 5"):
            mapped_run_id = run_mapped(api, simulator)
        if airflow >= (3, 1):
            with step("pages"):
                runs = {first[0]: (run_id, first[1], [-1]), MAPPED: (mapped_run_id, MAPPED, ITEMS)}
                open_pages(api, connection["connection_id"], runs)
