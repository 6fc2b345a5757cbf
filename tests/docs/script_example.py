"""The recipe for a script without Airflow; tests/docs/test_recipes.py runs it."""

import os
from collections import Counter
from datetime import UTC, datetime, timedelta

from airflow_provider_service.client import ServiceClient, ServiceConfig

config = ServiceConfig(
    base_url=os.environ["SERVICE_URL"], api_key=os.environ["SERVICE_API_KEY"], key_header="X-N8N-API-KEY"
)
with ServiceClient(config) as client:
    names = {workflow.id: workflow.name for workflow in client.workflows.list()}
    yesterday = datetime.now(UTC) - timedelta(days=1)
    failed = client.executions.list(status="error", started_after=yesterday)  # from n8n 2.37 on
    for workflow_id, count in Counter(execution.workflow_id for execution in failed).most_common():
        print(count, names.get(workflow_id, workflow_id))
