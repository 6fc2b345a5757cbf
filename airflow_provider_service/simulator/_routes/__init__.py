"""Every resource's endpoints; importing this package registers them all."""

from __future__ import annotations

from airflow_provider_service.simulator._routes import (  # noqa: F401 - they register their operations
    audit,
    community_packages,
    credentials,
    data_table_columns,
    data_table_rows,
    data_tables,
    discover,
    executions,
    folders,
    insights,
    mcp,
    projects,
    source_control,
    tags,
    users,
    variables,
    webhooks,
    workflows,
)
