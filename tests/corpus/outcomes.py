"""What a service makes of a file, by calls as plain as those of any script; for a comparison of two services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import requests

from tests.corpus.workflows import Definition

_WRITABLE = ("name", "nodes", "connections", "settings", "staticData", "pinData")
_GENERATED = ("id", "webhookId")


class Outcome(NamedTuple):
    """Status and text of an answer, and what is stored; None where it did not come to that."""

    created: tuple[int, str]
    stored: Mapping[str, Any] | None = None
    published: tuple[int, str] | None = None


class PlainService:
    """A service that is called without this provider."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._url, self._session = f"{base_url}/api/v1", requests.Session()
        self._session.trust_env = False
        self._session.headers["X-N8N-API-KEY"] = api_key

    def create_credential(self, kind: str, name: str, data: Mapping[str, Any]) -> None:
        """Create a credential."""
        self._post("/credentials", {"name": name, "type": kind, "data": data}).raise_for_status()

    def outcome(self, file: str, definition: Definition) -> Outcome:
        """Create a workflow and publish it."""
        body = {"name": file, "settings": {}, **{key: definition[key] for key in _WRITABLE if key in definition}}
        answer = self._post("/workflows", body)
        if not answer.ok:
            return Outcome(_said(answer))
        workflow_id = answer.json()["id"]
        held = self._session.get(f"{self._url}/workflows/{workflow_id}", timeout=60).json()
        published = self._post(f"/workflows/{workflow_id}/activate", {})
        said = (published.status_code, "") if published.ok else _said(published, workflow_id)
        return Outcome((answer.status_code, ""), _stored(held, body), said)

    def _post(self, path: str, body: Any) -> requests.Response:
        return self._session.post(self._url + path, json=body, timeout=120)


def _said(answer: requests.Response, workflow_id: str = "?") -> tuple[int, str]:
    is_json = "json" in answer.headers.get("content-type", "")
    text = answer.json().get("message", "") if is_json else answer.text
    return answer.status_code, text.replace(workflow_id, "<id>")


def _stored(held: Mapping[str, Any], body: Definition) -> dict[str, Any]:
    """What a workflow holds; in place of ids that the service has made is only that it has made them."""
    stored = {key: held.get(key) for key in _WRITABLE}
    sent = body["nodes"]
    stored["nodes"] = [
        {key: _value(key, value, sent[number].get(key)) for key, value in node.items()}
        for number, node in enumerate(held["nodes"])
    ]
    return stored


def _value(key: str, value: Any, sent: Any) -> Any:
    if key in _GENERATED and value != sent:
        return "made" if value else value
    if key == "credentials" and value != sent:
        return {kind: {**one, "id": "found"} if isinstance(one, dict) else one for kind, one in value.items()}
    return value
