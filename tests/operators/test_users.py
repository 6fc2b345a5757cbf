"""An invitation that fails for one user, which the simulator does not support."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.users import ServiceInviteUsersOperator


def test_an_invitation_that_fails_names_the_user_and_the_reason(requests_mock, monkeypatch):
    connection = {"conn_type": "service", "host": "https://service.example.com", "password": "key"}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))
    answer = [
        {"user": {"id": "1", "email": "a@example.com"}, "error": ""},
        {"user": {"id": "2", "email": "b@example.com"}, "error": "mail server is down"},
    ]
    requests_mock.post("https://service.example.com/api/v1/users", status_code=201, json=answer)
    task = ServiceInviteUsersOperator(task_id="task", users=["a@example.com", "b@example.com"])
    context: Any = {"ti": Mock()}
    with pytest.raises(AirflowFailException, match=r"1 of 2 invitations failed: b@example.com: mail server is down"):
        task.execute(context)
