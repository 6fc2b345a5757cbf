"""Production webhooks, which start a workflow from outside, because the API itself has no call for it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client.errors import ServiceInputError, shown
from airflow_provider_service.client.http.redaction import HiddenText
from airflow_provider_service.client.models.webhooks import WebhookAnswer, WebhookTrigger
from airflow_provider_service.client.resources._base import Resource

if TYPE_CHECKING:
    from airflow_provider_service.client.models.workflows import Workflow

WEBHOOK_NODE = "n8n-nodes-base.webhook"
METHODS = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"})


class Webhooks(Resource):
    """Production webhooks. They are not part of the API: they do not accept its key or answer in its form."""

    def find(self, workflow: Workflow, node: str | None = None) -> WebhookTrigger:
        """Find the webhook that starts a workflow: in the active version, or else in the draft. Sends nothing.

        :param workflow: the whole workflow, as ``workflows.get`` returns it.
        :param node: name of the webhook node; required if there are several.
        :raises ServiceInputError: there is no webhook, there are several and none is named, or it cannot be called.
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
            raise ServiceInputError(
                f"{about} has no webhook trigger, so nothing outside can start it; nothing was started"
            )
        if len(found) > 1:
            raise ServiceInputError(
                f"{about} has several webhooks; choose one by its node: {names}; nothing was started"
            )
        return _trigger(found[0], about)

    def call(
        self,
        trigger: WebhookTrigger,
        payload: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stopped: threading.Event | None = None,
    ) -> WebhookAnswer:
        """Call a webhook, without the key. Not safe to repeat: each call runs the workflow.

        A try that provably ran nothing is repeated automatically. The answer does not identify the execution.

        :param trigger: the webhook, as :meth:`find` returns it.
        :param payload: JSON body; for a method without a body, a mapping of plain values, which becomes the query.
        :param headers: additional headers, such as those of :func:`authentication_headers`.
        :param timeout: seconds within which the whole answer must arrive, instead of the connection's setting.
        :param stopped: set by the caller to stop further tries.
        :returns: the answer of the workflow, or of the service on its behalf.
        :raises ServiceInputError: the payload or a header cannot be sent, or the payload is too large.
        :raises ServiceWebhookNotLiveError: the webhook does not exist or is not live; nothing ran.
        :raises ServiceWebhookRefusedError: wrong authentication, method or body; nothing ran.
        :raises ServiceApiError: another failure; its ``not_processed`` is True if nothing can have run.
        """
        return self._transport.call_webhook(
            trigger.method,
            trigger.path,
            headers=headers or {},
            payload=checked_payload(trigger, payload),
            timeout=self._transport.config.timeout if timeout is None else timeout,
            stopped=stopped,
        )


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
    """The headers for a webhook's own authentication.

    :param kind: authentication of the webhook node: ``basicAuth``, or ``headerAuth``, for which ``user`` is the header.
    :raises ServiceInputError: the user is missing.
    """
    if not user:
        raise ServiceInputError("the webhook's connection has no login; it is the user, or the name of the header")
    if kind == "basicAuth":
        return {"Authorization": HiddenText(f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}")}
    return {user: HiddenText(password)}


def checked_payload(trigger: WebhookTrigger, payload: Any) -> Any:
    """The payload of a call; an empty object by default.

    :raises ServiceInputError: the webhook takes no body, and the payload is not a mapping of plain values.
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
