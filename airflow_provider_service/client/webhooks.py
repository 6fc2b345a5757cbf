"""Production webhooks: how a workflow is started from outside, since the API itself has no call for it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client import answers, errors
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    import requests

    from airflow_provider_service.client.models.workflows import Workflow

WEBHOOK_NODE = "n8n-nodes-base.webhook"


class ServiceWebhookNotLiveError(errors.ServiceApiError):
    """404 of the webhook itself: its workflow is not active, or became so a moment ago. Nothing ran."""

    repeat_may_help = True


class ServiceWebhookRefusedError(errors.ServiceApiError):
    """The webhook refused the call: its own authentication, its method, or the form of the body. Nothing ran."""


class WebhookAnswer(NamedTuple):
    """What a webhook answered: the status, and the JSON value or text. Any status here means that a run may exist."""

    status: int
    body: Any


class WebhookTrigger(NamedTuple):
    """A webhook node of a workflow."""

    node: str
    method: str
    path: str
    authentication: str


def webhook_of(workflow: Workflow, node: str | None = None) -> WebhookTrigger:
    """Find the webhook that starts a workflow: in what runs when it is active, else in its draft.

    :param node: name of the webhook node, needed when there are several.
    :raises ServiceInputError: there is none, several and no name, or one that can not be called as it stands.
    """
    nodes = (workflow.active_version.nodes if workflow.active_version else None) or workflow.nodes or []
    found = [one for one in nodes if one.get("type") == WEBHOOK_NODE and not one.get("disabled")]
    about = f"workflow {workflow.id} ({workflow.name})"
    names = ", ".join(repr(one.get("name")) for one in found)
    if node is not None:
        found = [one for one in found if one.get("name") == node]
        if not found:
            raise ServiceInputError(
                f"{about} has no webhook node {node!r}; it has {names or 'none'}; nothing was started"
            )
    if not found:
        raise ServiceInputError(f"{about} has no webhook trigger, so nothing outside can start it; nothing was started")
    if len(found) > 1:
        raise ServiceInputError(f"{about} has several webhooks, choose one by its node: {names}; nothing was started")
    return _trigger(found[0], about)


def _trigger(node: Mapping[str, Any], about: str) -> WebhookTrigger:
    parameters = node.get("parameters") or {}
    method = parameters.get("httpMethod", "GET")
    path = str(parameters.get("path") or node.get("webhookId") or "").strip("/")
    if not path or path.startswith("=") or ":" in path:
        raise ServiceInputError(
            f"webhook {node.get('name')!r} of {about} has the path {path!r}, which is not fixed; nothing was started"
        )
    return WebhookTrigger(
        node=str(node.get("name")),
        method=str(method[0] if isinstance(method, list) and method else method).upper(),
        path=path,
        authentication=str(parameters.get("authentication", "none")),
    )


def authentication_headers(kind: str, user: str, password: str) -> dict[str, str]:
    """The headers of a webhook's own authentication.

    :param kind: authentication of the webhook node: ``basicAuth``, or ``headerAuth`` whose header the user names.
    :raises ServiceInputError: no user.
    """
    if not user:
        raise ServiceInputError("the webhook's connection has no login; it is the user, or the name of the header")
    if kind == "basicAuth":
        return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}
    return {user: password}


def read_answer(response: requests.Response, method: str, path: str) -> WebhookAnswer:
    """Tell an answer of the workflow from a refusal of the webhook, after which nothing ran.

    :raises ServiceWebhookNotLiveError: the webhook is not there, or not yet.
    :raises ServiceWebhookRefusedError: wrong authentication, method or body.
    :raises ServiceRateLimitedError: too many calls.
    :raises ServiceUnavailableError: a proxy answered in the service's place.
    """
    try:
        body = response.json()
    except ValueError:
        body = response.text
    failure = _refusal(response, body, method) or _proxy_failure(response)
    if failure is None:
        return WebhookAnswer(response.status_code, body)
    kind, reason, hint = failure
    raise kind(
        reason,
        method=method,
        path=path,
        status=response.status_code,
        server_message=answers.message_of(response),
        hint=hint,
        retry_after=answers.retry_after(response),
    )


def _refusal(
    response: requests.Response, body: Any, method: str
) -> tuple[type[errors.ServiceApiError], str, str | None] | None:
    status = response.status_code
    text = body if isinstance(body, str) else ""
    message = str(body.get("message", "")) if isinstance(body, dict) else ""
    if status == HTTPStatus.NOT_FOUND and "is not registered for" in message:
        return ServiceWebhookRefusedError, f"the webhook does not take {method}", None
    if status == HTTPStatus.NOT_FOUND and ("is not registered" in message or "Cannot " in text):
        return ServiceWebhookNotLiveError, "the webhook is not live", "Is the workflow active?"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) and text:
        hint = "Its credentials come from webhook_conn_id or webhook_headers, not from the API key"
        return ServiceWebhookRefusedError, "the webhook's own authentication refused the call", hint
    if status in (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY) and _is_the_services(body):
        return ServiceWebhookRefusedError, "the webhook refused the body", None
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return errors.ServiceRateLimitedError, "too many calls", None
    return None


def _proxy_failure(response: requests.Response) -> tuple[type[errors.ServiceApiError], str, str | None] | None:
    if response.status_code in (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT):
        return errors.ServiceUnavailableError, "the service is not available now", None
    return None


def _is_the_services(body: Any) -> bool:
    return isinstance(body, str) or (isinstance(body, dict) and "code" in body)
