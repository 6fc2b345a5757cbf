"""What a feature is, and what it is tried with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.testing import run_task
from tests.conformance.expecting import unique
from tests.conformance.tables import Tables
from tests.conformance.target import Target
from tests.conformance.workbench import Workbench, done, webhook

#: The connections of the service and of an empty database, as tasks name them.
SERVICE, DATABASE = "service_default", "features_database"
#: Settings of a wait.
WAIT = {"timeout": 120, "poll_interval": 0.5}


class Kit(NamedTuple):
    """What a feature is tried with. Whatever is created with it is deleted afterwards."""

    service: Target
    bench: Workbench
    tables: Tables
    config: ServiceConfig
    folder: Path

    def run(self, operator: type[Any], **arguments: Any) -> Any:
        """Run a task to its end, and return its result."""
        return run_task(operator(task_id="task", **arguments)).return_value

    def ran(self, *nodes: dict[str, Any], **arguments: Any) -> str:
        """Run a workflow of these nodes, by default a webhook, and return the id of its execution."""
        made = self.bench.create(*(nodes or (webhook(unique("hook")), done())))
        result = self.run(ServiceRunWorkflowOperator, workflow_id=made.id, activate=True, **{**WAIT, **arguments})
        assert result["status"] == "success"
        return str(result["execution_id"])


Check = Callable[[Kit], str | None]


class Feature(NamedTuple):
    """A row of the table.

    :param needs: operations, or topics of differences: the feature works where the target has them all.
    """

    group: str
    name: str
    needs: tuple[str, ...]
    check: Check

    @property
    def key(self) -> str:
        """The name as the table is read back."""
        return self.name.strip("`")


FEATURES: list[Feature] = []
GROUPS = START, OPERATOR, TRANSFER, OTHER, PAGE = (
    "Start methods",
    "Operators",
    "Transfers",
    "Sensors, triggers and notifiers",
    "Pages and the doctor",
)


def feature(group: str, name: str | type, *needs: str) -> Callable[[Check], Check]:
    """Add a feature, named by its class or by a few words, with the operations that it needs.

    Its check raises an error if the feature does not work. If only a refusal could be seen, it returns the reason.
    """

    def add(check: Check) -> Check:
        FEATURES.append(Feature(group, name if isinstance(name, str) else f"`{name.__name__}`", needs, check))
        return check

    return add
