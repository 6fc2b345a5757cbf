"""Workflows made of real nodes, and their runs, for one test; all of them are deleted afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import requests

from airflow_provider_service.client._execution_data import is_behind, starting_items
from airflow_provider_service.client.errors import ServiceConflictError, ServiceNotFoundError, ServiceServerError
from airflow_provider_service.client.models import Execution, Workflow
from airflow_provider_service.simulator import _samples as samples
from airflow_provider_service.simulator._samples import WITH_ID, chain, node, respond
from tests.polling import wait_until

from .expecting import unique
from .target import Target

ENDED = frozenset({"success", "error", "canceled", "crashed"})
# The service keeps shorter waits in memory, as "running".
LONG_WAIT = 66
# A header that tells the runs of a workflow apart.
MARK = "x-mark"


def webhook(path: str, **parameters: Any) -> dict[str, Any]:
    """A webhook node that takes ``POST``; the older generation wants its ``webhookId`` from outside."""
    return {**samples.webhook(path, **parameters), "webhookId": str(uuid.uuid4())}


def wait(seconds: float) -> dict[str, Any]:
    """A node that waits."""
    return {**samples.wait(seconds), "webhookId": str(uuid.uuid4())}


def done() -> dict[str, Any]:
    """A node that passes on its input."""
    return node("Done", "noOp", 1, {}, 3)


def stop_and_error(message: str = "It failed") -> dict[str, Any]:
    """A node that fails."""
    return node("Stop", "stopAndError", 1, {"errorMessage": message}, 2)


def code(text: str) -> dict[str, Any]:
    """A node that runs JavaScript."""
    return node("Code", "code", 2, {"jsCode": text}, 2)


def answering(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A webhook, and a node that answers it with the id of the execution: needed where a list does not show it."""
    return webhook(path, responseMode="responseNode"), respond(respondWith="json", responseBody=WITH_ID)


class Workbench:
    """Makes workflows on a target and starts them."""

    def __init__(self, service: Target) -> None:
        self.service = service
        self._made: list[str] = []

    # ------------------------------------------------------------ workflows

    def create(self, *nodes: dict[str, Any], name: str | None = None, **settings: Any) -> Workflow:
        """Create an inactive workflow whose nodes run one after the other; a webhook and nothing else by default."""
        body = chain(name or unique("workflow"), list(nodes) or [webhook(unique("hook"))])
        made = self.service.client.workflows.create(body["name"], body["nodes"], body["connections"], settings)
        self._made.append(made.id)
        return made

    def publish(self, *nodes: dict[str, Any], name: str | None = None, **settings: Any) -> Workflow:
        """The same, active and with a webhook that is live."""
        made = self.create(*nodes, name=name, **settings)
        self.service.client.workflows.activate(made.id)
        wait_until(lambda: self.is_live(made), what="the webhook to go live")
        return made

    def deactivate(self, workflow: Workflow) -> None:
        """Make it inactive, and wait until its webhook is gone."""
        self.service.client.workflows.deactivate(workflow.id)
        wait_until(lambda: not self.is_live(workflow), what="the webhook to go")

    def is_live(self, workflow: Workflow) -> bool:
        """Whether a call of its webhook would start it; asked with a method that starts nothing."""
        answer = self.service.outside("GET", f"/webhook/{path_of(workflow)}")
        return "not registered for GET" in answer.text

    def remove(self, workflow_id: str) -> None:
        """Delete a workflow in whatever state it is."""
        workflows = self.service.client.workflows

        def gone() -> bool:
            try:
                workflows.deactivate(workflow_id)
                workflows.delete(workflow_id)
            except (ServiceConflictError, ServiceServerError):
                # It is still being unpublished; where it was published a moment before, the server may fail on that.
                return False
            except ServiceNotFoundError:
                pass
            return True

        wait_until(gone, what=f"workflow {workflow_id} to be deleted")

    def clean(self) -> None:
        """Delete every workflow that was made here."""
        for workflow_id in self._made:
            self.remove(workflow_id)

    # ------------------------------------------------------------ runs

    def call(self, workflow: Workflow, **options: Any) -> requests.Response:
        """Call the webhook, with an empty JSON object as body unless told otherwise."""
        if "data" not in options:
            options.setdefault("json", {})
        return self.service.outside(
            options.pop("method", "POST"), f"/webhook/{path_of(workflow)}{options.pop('query', '')}", **options
        )

    def start(self, workflow: Workflow) -> str:
        """Start a run and return the id of its execution."""
        mark = unique("mark")
        answer = self.call(workflow, headers={MARK: mark})
        assert answer.status_code == 200, answer.text
        named = answer.json().get("executionId")
        return str(named) if named else self.find(workflow, mark).id

    def queue(
        self, workflow: Workflow, calls: Executor, headers: Mapping[str, str] | None = None
    ) -> tuple[Execution, Future[requests.Response]]:
        """A run that queues, and its call, which gets no answer when the run leaves the queue."""
        mark = unique("mark")
        call = calls.submit(self.call, workflow, headers={**(headers or {}), MARK: mark})
        return self.find(workflow, mark), call

    def find(self, workflow: Workflow, mark: str) -> Execution:
        """The execution whose call carried this mark, as it is listed; those that run now have a list of their own."""
        listed = self.service.client.executions.list

        def carrying() -> list[Execution]:
            found = [*listed(workflow_id=workflow.id, status="running", include_data=True)]
            found += listed(workflow_id=workflow.id, include_data=True)
            return [one for one in found if any(item["headers"].get(MARK) == mark for item in starting_items(one))]

        return wait_until(carrying, what="the run to be listed")[0]

    def finished(self, execution_id: str, *, seconds: float = 30) -> Execution:
        """The execution with its data, when it has ended."""
        get = self.service.client.executions.get
        wait_until(
            lambda: get(execution_id).status in ENDED, seconds=seconds, what=f"the end of execution {execution_id}"
        )
        wait_until(
            lambda: not is_behind(get(execution_id, include_data=True)), what=f"the data of execution {execution_id}"
        )
        return get(execution_id, include_data=True)

    def reaches(self, execution_id: str, status: str, *, seconds: float = 30) -> Execution:
        """The execution when it has this status."""

        def there() -> Execution | None:
            execution = self.service.client.executions.get(execution_id)
            return execution if execution.status == status else None

        return wait_until(there, seconds=seconds, what=f"execution {execution_id} to be {status}")


def path_of(workflow: Workflow) -> str:
    """The path of its webhook."""
    paths = (str(one["parameters"]["path"]) for one in workflow.nodes or [] if one["type"].endswith(".webhook"))
    return next(paths).strip("/")


class Sleeper(NamedTuple):
    """A run that waits for 66 seconds, as it was seen asleep."""

    asleep: Execution
    listed: list[str]
    listed_as_waiting: list[str]


def fall_asleep(bench: Workbench) -> Sleeper:
    """Start a run that will wake after the shortest wait that is not kept in memory."""
    flow = bench.publish(*answering(unique("sleeper")), wait(LONG_WAIT), done())
    execution_id = bench.start(flow)
    bench.reaches(execution_id, "waiting")
    executions = bench.service.client.executions
    return Sleeper(
        asleep=executions.get(execution_id, include_data=True),
        listed=[one.id for one in executions.list(workflow_id=flow.id)],
        listed_as_waiting=[one.id for one in executions.list(workflow_id=flow.id, status="waiting")],
    )
