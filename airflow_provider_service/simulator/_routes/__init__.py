"""Every resource's endpoints; importing this package registers them all."""

from __future__ import annotations

from airflow_provider_service.simulator._routes import (  # noqa: F401 - they register their operations
    credentials,
    data_tables,
    executions,
    instance,
    mcp,
    projects,
    users,
    webhooks,
    workflows,
)
