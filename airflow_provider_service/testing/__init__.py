"""A testing kit for DAGs that use the service: a simulated service, and tasks that run without a deployment.

Needs the extra ``simulator``. Its pytest fixtures are in ``airflow_provider_service.testing.pytest_plugin``.
"""

from __future__ import annotations

from airflow_provider_service.testing._service import SimulatedRun, SimulatedService, SimulatedWorkflow
from airflow_provider_service.testing._tasks import TaskResult, run_task

__all__ = ["SimulatedRun", "SimulatedService", "SimulatedWorkflow", "TaskResult", "run_task"]
