"""Access to webhooks: the authentication of a webhook's node, and its refusals."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request

from airflow_provider_service.simulator._engine.nodes import WebhookAnswer
from airflow_provider_service.simulator._state import State
from airflow_provider_service.simulator._validation import ApiError

_ALGORITHMS = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
_MISSING = "Authorization is required!"
_WRONG = "Authorization data is wrong!"


class _DeniedError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Call(NamedTuple):
    headers: Headers
    now: float


def refusal(request: Request, state: State, node: Mapping[str, Any]) -> WebhookAnswer | None:
    """Check the call against the node's own authentication.

    :return: the refusal, or None
    :raises ApiError: 500 for an authentication that cannot be checked, so that it fails closed
    """
    kind = (node.get("parameters") or {}).get("authentication", "none")
    if kind == "none":
        return None
    credential_type, check = _KINDS.get(kind, ("", _by_header))
    reference = (node.get("credentials") or {}).get(credential_type) or {}
    if state.credentials.find(reference.get("id", "")) is None:
        raise ApiError(500, "No authentication data defined on node!", code=0)
    try:
        check(_Call(request.headers, state.clock.now().timestamp()), state.credentials.data(reference["id"]))
    except _DeniedError as denied:
        return WebhookAnswer(denied.status, str(denied).encode(), {"WWW-Authenticate": 'Basic realm="Webhook"'})
    return None


def _by_header(call: _Call, expected: Mapping[str, Any]) -> None:
    if not _same(call.headers.get(str(expected.get("name", ""))), expected.get("value")):
        raise _DeniedError(403, _WRONG)


def _by_bearer(call: _Call, expected: Mapping[str, Any]) -> None:
    if not _same(call.headers.get("authorization"), f"Bearer {expected.get('token')}"):
        raise _DeniedError(403, _WRONG)


def _by_password(call: _Call, expected: Mapping[str, Any]) -> None:
    scheme, _, encoded = call.headers.get("authorization", "").partition(" ")
    try:
        given = base64.b64decode(encoded, validate=True).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        given = ""
    if ":" not in given:
        raise _DeniedError(401, _MISSING)
    if not _same(given, f"{expected.get('user')}:{expected.get('password')}"):
        raise _DeniedError(401, "Authentication data is wrong!")


def _by_token(call: _Call, expected: Mapping[str, Any]) -> None:
    token = call.headers.get("authorization", "").partition(" ")[2]
    if not token:
        raise _DeniedError(401, "No token provided")
    parts = token.split(".")
    if len(parts) != 3:
        raise _DeniedError(403, "jwt malformed")
    try:
        header, claims = (json.loads(_decoded(part)) for part in parts[:2])
    except ValueError:
        raise _DeniedError(403, "invalid token") from None
    algorithm = expected.get("algorithm", "HS256")
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise _DeniedError(403, "invalid token")
    if header.get("alg") != algorithm or algorithm not in _ALGORITHMS:
        raise _DeniedError(403, "invalid algorithm")
    signed = hmac.digest(
        str(expected.get("secret", "")).encode(), token.rpartition(".")[0].encode(), _ALGORITHMS[algorithm]
    )
    if not hmac.compare_digest(base64.urlsafe_b64encode(signed).rstrip(b"="), parts[2].encode()):
        raise _DeniedError(403, "invalid signature")
    if claims.get("nbf", call.now) > call.now:
        raise _DeniedError(403, "jwt not active")
    if claims.get("exp", call.now + 1) <= call.now:
        raise _DeniedError(403, "jwt expired")


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _same(given: str | None, expected: Any) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), str(expected).encode())


_KINDS: dict[str, tuple[str, Callable[[_Call, Mapping[str, Any]], None]]] = {
    "basicAuth": ("httpBasicAuth", _by_password),
    "bearerAuth": ("httpBearerAuth", _by_bearer),
    "headerAuth": ("httpHeaderAuth", _by_header),
    "jwtAuth": ("jwtAuth", _by_token),
}
