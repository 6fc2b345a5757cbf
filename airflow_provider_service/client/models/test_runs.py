"""Evaluation test runs."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_service.client.models._base import ServiceModel, Timestamp

TestRunStatus = Literal["new", "running", "completed", "error", "cancelled"]
TestCaseStatus = Literal["new", "running", "evaluation_running", "success", "error", "warning", "cancelled"]


class TestRun(ServiceModel):
    """A test run.

    The answer to a start contains only ``id``, ``status`` and ``created_at``; that to a cancel, only ``id`` and
    ``status``.
    """

    id: str
    status: TestRunStatus | str
    run_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    metrics: dict[str, Any] | None = None
    error_code: str | None = None
    error_details: dict[str, Any] | None = None
    final_result: Literal["success", "error", "warning"] | str | None = None
    test_case_count: int | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class TestCase(ServiceModel):
    """One case of a test run."""

    id: str
    status: TestCaseStatus | str
    run_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    metrics: dict[str, Any] | None = None
    error_code: str | None = None
    error_details: dict[str, Any] | None = None
    inputs: dict[str, Any] | None = None
    outputs: dict[str, Any] | None = None
    execution_id: str | None = None
