"""Production webhooks: how a workflow is started from outside, since the API itself has no call for it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client import answers, errors
from airflow_provider_service.client.errors import ServiceInputError, shown
from airflow_provider_service.client.redaction import HiddenText

if TYPE_CHECKING:
    from airflow_provider_service.client.exchange import Answer
    from airflow_provider_service.client.models.workflows import Workflow

WEBHOOK_NODE = "n8n-nodes-base.webhook"

_NOT_REGISTERED = re.compile(r'The requested webhook ".*" is not registered\.')
_DENIED_STATUSES = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.INTERNAL_SERVER_ERROR})
_NO_CREDENTIAL = "No authentication data defined on node!"
# The service's own words, which no workflow is likely to use.
_DENIALS = frozenset(
    {
        "Authorization data is wrong!",
        "Authorization is required!",
        "Authentication data is wrong!",
        "IP is not allowed to access the webhook!",
        _NO_CREDENTIAL,
    }
)
# A library's words on a token. A workflow that checks a token by itself may answer them too, and has run.
_TOKEN_DENIAL = re.compile(
    r"No token provided|(jwt|invalid|secretOrPublicKey|secret or public key|iat|maxAge) [^\n]{1,300}|error:[^\n]{1,300}"
)
_DENIAL_HEADER = 'Basic realm="Webhook"'
METHODS = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"})
_UNAVAILABLE_STATUSES = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD"})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([\x21-\x7e\xa1-\xff]([\t\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa1-\xff])?)?")


class ServiceWebhookNotLiveError(errors.ServiceApiError):
    """404 of the webhook itself: its workflow is not active, or became so a moment ago. Nothing ran."""

    repeat_may_help = True


class ServiceWebhookRefusedError(errors.ServiceApiError):
    """The webhook refused the call: its own authentication, its method, or the form of the body. Nothing ran."""


class ServiceWebhookUncertainError(errors.ServiceApiError):
    """429 or 502 to 504: a proxy answered, or the workflow itself. Only a look at the executions tells what ran."""

    repeat_may_help = True
    not_processed = False


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

    @property
    def has_body(self) -> bool:
        """Whether the payload travels as a body, and not in the query."""
        return self.method not in METHODS_WITHOUT_BODY


def webhook_of(workflow: Workflow, node: str | None = None) -> WebhookTrigger:
    """Find the webhook that starts a workflow: in what runs when it is active, else in its draft.

    :param node: name of the webhook node, needed when there are several.
    :raises ServiceInputError: there is none, several and no name, or one that cannot be called as it stands.
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
    if not isinstance(parameters, dict):
        raise ServiceInputError(
            f"webhook {node.get('name')!r} of {about} has parameters that are not an object; nothing was started"
        )
    given = parameters.get("httpMethod", "GET")
    method = str(given[0] if isinstance(given, list) and given else given).upper()
    path = str(parameters.get("path") or node.get("webhookId") or "").strip("/")
    if not path or path.startswith("=") or ":" in path:
        raise ServiceInputError(
            f"webhook {node.get('name')!r} of {about} has the path {path!r}, which is not fixed; nothing was started"
        )
    if method not in METHODS:
        raise ServiceInputError(
            f"webhook {node.get('name')!r} of {about} takes {shown(given)}, which is not an HTTP method; "
            "nothing was started"
        )
    return WebhookTrigger(
        node=str(node.get("name")),
        method=method,
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
        return {"Authorization": HiddenText(f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}")}
    return {user: HiddenText(password)}


def checked_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    """Refuse headers that cannot be sent, without showing their values, which no traceback shows from here on.

    :raises ServiceInputError: a name or value that is not text, or holds what HTTP does not allow.
    """
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ServiceInputError(f"{name!r} cannot be the name of a header; nothing was started")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise ServiceInputError(
                f"the value of header {name!r} must be text without line breaks and outer blanks; nothing was started"
            )
    return {name: HiddenText(value) for name, value in headers.items()}


def checked_payload(trigger: WebhookTrigger, payload: Any) -> Any:
    """The payload of a call; an empty object when there is none.

    :raises ServiceInputError: a webhook without body takes a mapping of plain values, since they become its query.
    """
    if payload is None:
        return {}
    if trigger.has_body:
        return payload
    if not isinstance(payload, Mapping) or any(isinstance(one, (Mapping, list, tuple)) for one in payload.values()):
        raise ServiceInputError(
            f"webhook {trigger.node!r} takes {trigger.method}, so payload must be a mapping of plain values; "
            "nothing was started"
        )
    return payload


def is_refusal(error: errors.ServiceApiError) -> bool:
    """Whether a failed call certainly ran nothing. A workflow may itself answer with any status, 429 and 503 too."""
    if isinstance(error, (ServiceWebhookNotLiveError, ServiceWebhookRefusedError)):
        return True
    return error.status is None and error.not_processed


def read_answer(response: Answer, method: str, path: str) -> WebhookAnswer:
    """Tell an answer of the workflow from a refusal of the service, after which nothing ran.

    :raises ServiceWebhookNotLiveError: the webhook is not there, or not yet.
    :raises ServiceWebhookRefusedError: wrong authentication, method or body.
    :raises ServiceWebhookUncertainError: a proxy or the workflow answered that the service is not available.
    """
    try:
        body = response.json()
    except ValueError:
        body = response.text
    failure = _failure(response, body, method)
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


def _failure(response: Answer, body: Any, method: str) -> tuple[type[errors.ServiceApiError], str, str | None] | None:
    # Whole texts of the service are compared: a workflow that answers in similar words has run.
    status = response.status_code
    text = body if isinstance(body, str) else ""
    is_page = "html" in response.headers.get("Content-Type", "")
    coded = body if isinstance(body, dict) and "code" in body else {}
    message = str(coded.get("message", ""))
    if status == HTTPStatus.NOT_FOUND and message.startswith("This webhook is not registered for "):
        # While a webhook goes live, the service may propose the very method that it refuses.
        if not re.search(rf"\b{method}\b", message.partition("Did you mean")[2]):
            return ServiceWebhookRefusedError, f"the webhook does not take {method}", None
        return ServiceWebhookNotLiveError, "the webhook is not live yet", None
    if status == HTTPStatus.NOT_FOUND and _NOT_REGISTERED.fullmatch(message):
        return ServiceWebhookNotLiveError, "the webhook is not live", "Is the workflow active?"
    if status == HTTPStatus.NOT_FOUND and is_page and f"Cannot {method} /" in text:
        return ServiceWebhookNotLiveError, "there is no webhook at this address", "Is the service still starting?"
    if message == _NO_CREDENTIAL or _is_denial(response, text):
        hint = "Its credentials come from webhook_conn_id or webhook_headers, not from the API key"
        return ServiceWebhookRefusedError, "the webhook's own authentication refused the call", hint
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and message == "Failed to parse request body":
        return ServiceWebhookRefusedError, "the webhook refused the body", None
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and (is_page or text == "Payload Too Large"):
        return ServiceWebhookRefusedError, "the body is larger than the server accepts", None
    if status in _UNAVAILABLE_STATUSES:
        return ServiceWebhookUncertainError, "the service is not available now, or its workflow says so", None
    return None


def _is_denial(response: Answer, text: str) -> bool:
    """Whether the webhook's node refused the call. Unlike a workflow, it names no type of what it answers."""
    if response.status_code not in _DENIED_STATUSES or not text:
        return False
    is_typed = "Content-Type" in response.headers
    by_node = response.headers.get("WWW-Authenticate") == _DENIAL_HEADER
    if text in _DENIALS or (by_node and not is_typed):
        return True
    return (by_node or not is_typed) and _TOKEN_DENIAL.fullmatch(text) is not None
