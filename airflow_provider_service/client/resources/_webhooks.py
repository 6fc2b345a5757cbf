"""Production webhooks, which start a workflow from outside; the API itself has no operation that does."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import MAX_ID_CHARS
from airflow_provider_service.client._http.encoding import FilePart, FileSource, file_parts
from airflow_provider_service.client._http.redaction import HiddenText
from airflow_provider_service.client._models import PARAMETER_MARK, WebhookAnswer, WebhookTrigger
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceError, ServiceInputError
from airflow_provider_service.client.resources._base import Resource

if TYPE_CHECKING:
    from airflow_provider_service.client.resources._workflows import Workflow

WEBHOOK_NODE = "n8n-nodes-base.webhook"
#: Algorithms by which a webhook's node can verify a token.
TOKEN_ALGORITHMS = tuple(f"{kind}{bits}" for kind in ("HS", "RS", "ES", "PS") for bits in (256, 384, 512))
# More than the error of any usual clock of a server.
TOKEN_SECONDS = 900
METHODS = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"})


class Webhooks(Resource):
    """Production webhooks. They are not part of the API: they neither accept its key nor answer in its form."""

    def find(self, workflow: Workflow, node: str | None = None, *, method: str | None = None) -> WebhookTrigger:
        """Find the webhook that starts a workflow: in the active version, or else in the draft. Sends nothing.

        :param workflow: the whole workflow, as ``workflows.get`` returns it.
        :param node: name of the webhook node; required if there are several.
        :param method: HTTP method to call it with, if its node takes several; by default the first of them.
        :raises ServiceInputError: there is no webhook, there are several and none is named, it does not take the
            method, or it cannot be called.
        """
        nodes = (workflow.active_version.nodes if workflow.active_version else None) or workflow.nodes or []
        webhooks = [webhook for webhook in nodes if _is_webhook(webhook)]
        label = f"workflow {workflow.id} ({workflow.name})"
        names = ", ".join(repr(webhook.get("name")) for webhook in webhooks)
        if node is not None:
            webhooks = [webhook for webhook in webhooks if webhook.get("name") == node]
            if not webhooks:
                raise ServiceInputError(
                    f"{label} has no webhook node {node!r}; it has {names or 'none'}; nothing was started"
                )
        if not webhooks:
            raise ServiceInputError(
                f"{label} has no webhook trigger, so nothing outside can start it; nothing was started"
            )
        if len(webhooks) > 1:
            raise ServiceInputError(
                f"{label} has several webhooks; choose one by its node: {names}; nothing was started"
            )
        return _trigger(webhooks[0], label, method)

    def call(
        self,
        trigger: WebhookTrigger,
        payload: Any = None,
        *,
        path_parameters: Mapping[str, str | int] | None = None,
        files: Mapping[str, str | FileSource] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stopped: threading.Event | None = None,
        may_repeat: Callable[[ServiceError], bool] | None = None,
    ) -> WebhookAnswer:
        """Call a webhook, without the key. Not safe to repeat: each call runs the workflow.

        A try that provably ran nothing is repeated automatically. The answer does not identify the execution.

        :param trigger: the webhook, as :meth:`find` returns it.
        :param payload: JSON body; for a method without a body, a mapping of plain values, which becomes the query.
        :param path_parameters: values of the parameters in the webhook's path, by name; text, or whole numbers.
        :param files: files to send, by the name of their field: local paths, or objects with the methods of
            ``pathlib.Path``. The body is then multipart form data, and the payload its text fields.
        :param headers: additional headers, such as those of ``authentication_headers``.
        :param timeout: seconds within which the whole answer must arrive, instead of the connection's setting.
        :param stopped: set by the caller to stop further tries.
        :param may_repeat: asked after a try that seems to have run nothing: whether it may be repeated. A workflow
            that has run may answer as a webhook does that is not live.
        :returns: the answer of the workflow, or of the service on its behalf.
        :raises ServiceInputError: the payload, a header or a file cannot be sent, they are too large, or a parameter of
            the path is missing, unknown or cannot be sent.
        :raises ServiceFileError: a file could not be read while it was sent; nothing ran.
        :raises ServiceWebhookNotLiveError: the webhook does not exist or is not live; nothing ran.
        :raises ServiceWebhookRefusedError: wrong authentication, method or body; nothing ran.
        :raises ServiceApiError: another failure; its ``not_processed`` is True if nothing can have run.
        """
        return self._transport.call_webhook(
            trigger.method,
            filled_path(trigger, path_parameters),
            headers=headers or {},
            payload=checked_payload(trigger, payload, with_files=bool(files)),
            files=checked_files(trigger, files),
            timeout=self._transport.config.timeout if timeout is None else timeout,
            stopped=stopped,
            may_repeat=may_repeat,
        )


def methods_of(parameters: Mapping[str, Any]) -> list[str]:
    methods = parameters.get("httpMethod", ["GET", "POST"] if parameters.get("multipleMethods") is True else "GET")
    return [str(method).upper() for method in (methods if isinstance(methods, list) and methods else [methods])]


def addresses_of(nodes: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Method and path of each webhook that these nodes contain, unless its path is an expression."""
    addresses: set[tuple[str, str]] = set()
    for node in nodes:
        parameters = node.get("parameters") or {}
        if _is_webhook(node) and isinstance(parameters, Mapping):
            with suppress(ServiceInputError):
                path = _path(parameters, str(node.get("webhookId") or ""), "webhook")
                addresses |= {(method, path) for method in methods_of(parameters)}
    return addresses


def _is_webhook(node: Mapping[str, Any]) -> bool:
    return node.get("type") == WEBHOOK_NODE and not node.get("disabled")


def _trigger(node: Mapping[str, Any], label: str, method: str | None) -> WebhookTrigger:
    parameters = node.get("parameters") or {}
    which = f"webhook {node.get('name')!r} of {label}"
    if not isinstance(parameters, dict):
        raise ServiceInputError(f"{which} has parameters that are not an object; nothing was started")
    taken = methods_of(parameters)
    chosen = taken[0] if method is None else str(method).upper()
    if chosen not in taken:
        raise ServiceInputError(f"{which} takes {', '.join(taken)}, not {shown(method)}; nothing was started")
    if chosen not in METHODS:
        raise ServiceInputError(f"{which} takes {shown(chosen)}, which is not an HTTP method; nothing was started")
    return WebhookTrigger(
        node=str(node.get("name")),
        method=chosen,
        path=_path(parameters, str(node.get("webhookId") or ""), which),
        authentication=str(parameters.get("authentication", "none")),
        response_mode=str(parameters.get("responseMode", "onReceived")),
    )


def _path(parameters: Mapping[str, Any], webhook_id: str, which: str) -> str:
    path = str(parameters.get("path") or webhook_id).strip().strip("/")
    if not path or path.startswith("="):
        raise ServiceInputError(f"{which} has the path {path!r}, which is not fixed; nothing was started")
    if not any(part.startswith(PARAMETER_MARK) for part in path.split("/")):
        return path
    if not webhook_id:
        raise ServiceInputError(
            f"{which} has the path {path!r} with parameters, but no webhook id for its address; nothing was started"
        )
    return f"{webhook_id}/{path}"


def filled_path(trigger: WebhookTrigger, values: Mapping[str, str | int] | None) -> str:
    values = {} if values is None else values
    names = trigger.path_parameters
    if not isinstance(values, Mapping):
        raise ServiceInputError(f"path_parameters must be a mapping, not {shown(values)}; nothing was started")
    missing, unknown = [name for name in names if name not in values], [name for name in values if name not in names]
    if missing or unknown:
        problems = (("lacks", missing), ("has unknown names:", unknown))
        what = " and ".join(f"{problem} {', '.join(map(repr, some))}" for problem, some in problems if some)
        raise ServiceInputError(
            f"path_parameters {what}; webhook {trigger.node!r} has the path {trigger.path!r}; nothing was started"
        )
    return "/".join(
        _checked_value(part[1:], values[part[1:]]) if part.startswith(PARAMETER_MARK) else part
        for part in trigger.path.split("/")
    )


def _checked_value(name: str, value: object) -> str:
    """The service cannot tell an encoded slash from one that separates segments, so a value must not contain any."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**MAX_ID_CHARS
    text = str(value) if is_number else value
    if not isinstance(text, str):
        raise ServiceInputError(
            f"path parameter {name!r} must be text or a whole number, not {shown(value)}; nothing was started"
        )
    if not text.strip() or text in (".", "..") or "/" in text or len(text) > MAX_ID_CHARS:
        raise ServiceInputError(
            f"path parameter {name!r} cannot be {shown(value)}: it must not be empty, '.' or '..', contain '/', or "
            f"have more than {MAX_ID_CHARS} characters; nothing was started"
        )
    return text


def authentication_headers(kind: str, user: str, password: str, *, algorithm: str | None = None) -> dict[str, str]:
    """The user is the header's name for ``headerAuth``; for ``jwtAuth`` without one, the password signs a token."""
    if kind == "jwtAuth" and not user:
        return {"Authorization": HiddenText(f"Bearer {signed_token(password, algorithm or 'HS256')}")}
    if not user:
        raise ServiceInputError("the webhook's connection has no login; it is the user, or the name of the header")
    if kind != "basicAuth":
        return {user: HiddenText(password)}
    try:
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
    except UnicodeEncodeError:  # it quotes the password
        pass
    else:
        return {"Authorization": HiddenText(f"Basic {login}")}
    raise ServiceInputError(
        "login and password of the webhook's connection must be text that UTF-8 can hold (no half of a surrogate pair)"
    )


def signed_token(
    secret: str, algorithm: str, *, offset: timedelta | None = None, seconds: float = TOKEN_SECONDS
) -> str:
    import jwt

    if not secret:
        raise ServiceInputError("the webhook's connection has no password; it is the secret that signs the token")
    if algorithm not in TOKEN_ALGORITHMS:
        raise ServiceInputError(
            f"the algorithm of the webhook's connection must be one of {', '.join(TOKEN_ALGORITHMS)}, not "
            f"{shown(algorithm)}"
        )
    issued = int((clock().utcnow() + (offset or timedelta())).timestamp())
    try:
        return jwt.encode({"iat": issued, "exp": issued + int(seconds)}, secret, algorithm)
    except (jwt.PyJWTError, NotImplementedError, TypeError, ValueError) as error:  # it may quote the key
        reason = type(error).__name__
    raise ServiceInputError(f"the password of the webhook's connection cannot sign with {algorithm} ({reason})")


def checked_files(trigger: WebhookTrigger, files: Mapping[str, str | FileSource] | None) -> list[FilePart]:
    parts = file_parts({} if files is None else files)
    if parts and not trigger.has_body:
        raise ServiceInputError(
            f"webhook {trigger.node!r} takes {trigger.method}, which has no body for files; nothing was started"
        )
    return parts


def checked_payload(trigger: WebhookTrigger, payload: Any, *, with_files: bool = False) -> Any:
    if payload is None:
        return {}
    if trigger.has_body and not with_files:
        return payload
    if not isinstance(payload, Mapping) or any(isinstance(value, (Mapping, list, tuple)) for value in payload.values()):
        why = "is called with files, whose fields are texts, so" if with_files else f"takes {trigger.method}, so"
        raise ServiceInputError(
            f"webhook {trigger.node!r} {why} payload must be a mapping of plain values; nothing was started"
        )
    return payload
