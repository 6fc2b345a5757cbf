"""Servers that do not know every status of executions."""

from __future__ import annotations

from typing import Any

import requests_mock

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.events.endings import Poll

ADDRESS = "https://service.example.com"


def test_a_status_that_cannot_be_listed_hides_no_other(requests_mock: requests_mock.Mocker) -> None:
    def listed(request: Any, context: Any) -> dict[str, Any]:
        context.headers["Content-Type"] = "application/json"
        status = request.qs.get("status", [None])[0]
        if status == "new":
            context.status_code = 400
            return {"message": "request/query/status must be equal to one of the allowed values: running, waiting"}
        found = [{"id": "7", "status": "running", "workflowId": "w"}] if status == "running" else []
        return {"data": found, "nextCursor": None}

    requests_mock.get(f"{ADDRESS}/api/v1/executions", json=listed)

    with ServiceClient(ServiceConfig(base_url=ADDRESS, api_key="key")) as client:
        assert [one.id for one in Poll().look(client).active] == ["7"]
