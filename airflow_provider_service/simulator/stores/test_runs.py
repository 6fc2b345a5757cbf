"""Evaluation test runs of workflows, which advance with the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_service.simulator.clock import stamp
from airflow_provider_service.simulator.host import Host
from airflow_provider_service.simulator.stores.workflows import WorkflowStore
from airflow_provider_service.simulator.validation import ApiError

STATUSES = ("new", "running", "completed", "error", "cancelled")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a started run: it ends after ``seconds``, with one test case for each of ``inputs``."""

    seconds: float = 1.0
    inputs: tuple[dict[str, Any], ...] = ({"question": "1 + 1"}, {"question": "2 + 2"})
    metrics: dict[str, Any] = field(default_factory=lambda: {"correctness": 1})
    error_code: str | None = None


@dataclass
class TestRun:
    """One run; its status follows from the time at which it is read."""

    __test__ = False  # not a test of pytest's

    id: str
    workflow_id: str
    created: datetime
    outcome: Outcome
    cancelled: datetime | None = None

    @property
    def ends(self) -> datetime:
        return self.created + timedelta(seconds=self.outcome.seconds)

    def status(self, now: datetime) -> str:
        if self.cancelled:
            return "cancelled"
        if now < self.ends:
            return "running"
        return "error" if self.outcome.error_code else "completed"

    def describe(self, now: datetime) -> dict[str, Any]:
        """The run as the service shows it."""
        status = self.status(now)
        done = status in ("completed", "error")
        ended = self.cancelled or (self.ends if done else None)
        return {
            "id": self.id,
            "status": status,
            "runAt": stamp(self.created),
            "completedAt": stamp(ended) if ended else None,
            "metrics": self.outcome.metrics if status == "completed" else None,
            "errorCode": self.outcome.error_code if status == "error" else None,
            "errorDetails": None,
            "finalResult": {"completed": "success", "error": "error"}.get(status),
            "testCaseCount": len(self.outcome.inputs),
            "createdAt": stamp(self.created),
            "updatedAt": stamp(ended or self.created),
        }

    def cases(self, now: datetime) -> list[dict[str, Any]]:
        """The run's test cases as the service shows them."""
        status = self.status(now)
        case_status = {"completed": "success"}.get(status, status)
        done = status == "completed"
        return [
            {
                "id": f"{self.id[:-2]}{index:02d}",
                "status": case_status,
                "runAt": stamp(self.created),
                "completedAt": stamp(self.ends) if done else None,
                "metrics": self.outcome.metrics if done else None,
                "errorCode": self.outcome.error_code if status == "error" else None,
                "errorDetails": None,
                "inputs": inputs,
                "outputs": inputs if done else None,
                "executionId": None,
            }
            for index, inputs in enumerate(self.outcome.inputs)
        ]


class TestRunStore:
    """Test runs, newest first; ``outcome`` is that of the next ones."""

    __test__ = False

    def __init__(self, host: Host, workflows: WorkflowStore) -> None:
        self._host = host
        self._workflows = workflows
        self._runs: dict[str, TestRun] = {}
        self.outcome = Outcome()

    def check_license(self) -> None:
        """Refuse to start or cancel runs without a license.

        :raises ApiError: 403
        """
        if not self._host.licensed:
            raise ApiError(403, "Evaluations are not available on your plan")

    def of_workflow(self, workflow_id: str, status: str | None = None) -> Sequence[TestRun]:
        """The runs of a workflow (none for an unknown workflow)."""
        now = self._host.clock.now()
        runs = (run for run in reversed(self._runs.values()) if run.workflow_id == workflow_id)
        return [run for run in runs if status is None or run.status(now) == status]

    def get(self, workflow_id: str, run_id: str) -> TestRun:
        """One run.

        :raises ApiError: 404
        """
        run = self._runs.get(run_id)
        if run is None or run.workflow_id != workflow_id:
            raise ApiError(404, "Test run not found")
        return run

    def start(self, workflow_id: str) -> TestRun:
        """Start a run.

        :raises ApiError: 403 no license, 404 workflow, 409 one is running
        """
        self.check_license()
        if self._workflows.find(workflow_id) is None:
            raise ApiError(404, "Workflow not found")
        if self.of_workflow(workflow_id, "running"):
            raise ApiError(409, "A test run is already running for this workflow")
        run = TestRun(self._host.new_id(), workflow_id, self._host.clock.now(), self.outcome)
        self._runs[run.id] = run
        return run

    def cancel(self, workflow_id: str, run_id: str) -> TestRun:
        """Cancel a running run.

        :raises ApiError: 403 no license, 404, 409 when it is over
        """
        self.check_license()
        run = self.get(workflow_id, run_id)
        now = self._host.clock.now()
        if run.status(now) != "running":
            raise ApiError(409, "The test run cannot be cancelled")
        run.cancelled = now
        return run
