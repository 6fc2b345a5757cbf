"""Evaluation test runs of a workflow."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_service.client.models.test_runs import TestCase, TestRun, TestRunStatus
from airflow_provider_service.client.resources._base import Resource


class TestRuns(Resource):
    """Evaluation test runs of a workflow. Starting them is available on some plans of the server only."""

    def list(
        self, workflow_id: str, *, status: TestRunStatus | None = None, limit: int | None = None
    ) -> Iterator[TestRun]:
        """Iterate over test runs: ``GET /workflows/{id}/test-runs``. Scope ``testRun:list``.

        :param status: only those with this status.
        :param limit: maximum number of test runs; None for all.
        :raises ServiceNotFoundError: no such workflow.
        """
        return self._pages(
            TestRun,
            "/workflows/{}/test-runs",
            workflow_id,
            scope="testRun:list",
            query={"status": status},
            limit=limit,
        )

    def create(self, workflow_id: str) -> TestRun:
        """Start a test run: ``POST /workflows/{id}/test-runs``. Scope ``testRun:create``.

        Not safe to repeat: each call starts a test run.

        :returns: id, status and time of creation.
        :raises ServiceNotLicensedError: the plan does not include evaluations.
        :raises ServiceConflictError: the workflow cannot be tested now.
        :raises ServiceNotFoundError: no such workflow.
        """
        return self._call(TestRun, "POST", "/workflows/{}/test-runs", workflow_id, scope="testRun:create")

    def get(self, workflow_id: str, run_id: str) -> TestRun:
        """Read a test run: ``GET /workflows/{id}/test-runs/{runId}``. Scope ``testRun:read``.

        :raises ServiceNotFoundError: no such workflow or test run.
        """
        return self._call(TestRun, "GET", "/workflows/{}/test-runs/{}", workflow_id, run_id, scope="testRun:read")

    def cancel(self, workflow_id: str, run_id: str) -> TestRun:
        """Cancel a test run: ``POST /workflows/{id}/test-runs/{runId}/cancel``. Scope ``testRun:cancel``.

        Safe to repeat: a repeat raises a conflict, which says that it has already ended.

        :returns: id and status.
        :raises ServiceConflictError: it has already ended.
        :raises ServiceNotFoundError: no such workflow or test run.
        """
        return self._call(
            TestRun,
            "POST",
            "/workflows/{}/test-runs/{}/cancel",
            workflow_id,
            run_id,
            scope="testRun:cancel",
            repeatable=True,
        )

    def list_cases(self, workflow_id: str, run_id: str, *, limit: int | None = None) -> Iterator[TestCase]:
        """Iterate over the cases of a test run: ``GET /workflows/{id}/test-runs/{runId}/test-cases``.

        Scope ``testRun:read``.

        :param limit: maximum number of cases; None for all.
        :raises ServiceNotFoundError: no such workflow or test run.
        """
        return self._pages(
            TestCase,
            "/workflows/{}/test-runs/{}/test-cases",
            workflow_id,
            run_id,
            scope="testRun:read",
            limit=limit,
        )
