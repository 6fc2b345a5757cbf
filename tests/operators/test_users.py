"""What becomes of invitations: the service sends them, does not send them, or fails."""

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


@pytest.mark.parametrize("is_sent", [True, False])
def test_an_invitation_that_was_not_sent_is_a_warning(requests_mock, monkeypatch, task_log, caplog, is_sent):
    connection = {"conn_type": "service", "host": "https://service.example.com", "password": "key"}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))
    user = {
        "id": "1",
        "email": "a@example.com",
        "emailSent": is_sent,
        "inviteAcceptUrl": "https://x.example.com/secret",
    }
    requests_mock.post("https://service.example.com/api/v1/users", status_code=201, json=[{"user": user, "error": ""}])
    task = ServiceInviteUsersOperator(task_id="task", users=["a@example.com"])
    context: Any = {"ti": Mock()}

    result = task.execute(context)

    assert result["invited"] == [{"user_id": "1", "email": "a@example.com", "email_sent": is_sent}]
    warning = "sent no e-mail to a@example.com. Send them their invitation links, which https://service.example.com/set"
    assert (warning in caplog.text) is not is_sent
    assert "secret" not in caplog.text
