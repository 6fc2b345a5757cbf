"""Every exception of the package: one per kind of error, each with attributes that say how to react.

Code that repeats calls, waits for executions or ends tasks checks the attributes of :class:`ServiceError`, never a list
of classes.
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Self


class ServiceError(Exception):
    """Root of all exceptions of this package."""

    #: Whether the same call may succeed later without any change.
    repeat_may_help = False
    #: Whether the error is normal for a moment, as after a workflow was activated, and needs no warning.
    is_momentary = False
    #: Whether the server provably did not act on the request.
    not_processed = True
    #: Whether the next poll would fail in the same way, so that a wait or a search ends at once.
    ends_wait = False
    #: Whether a person must change something first, so that trying the task again is pointless.
    final = False

    @property
    def explanation(self) -> str:
        """What went wrong and what to do about it."""
        return str(self)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process boundaries in Airflow, and ``__init__`` has keyword-only arguments.
        return copyreg.__newobj__, (type(self), str(self)), self.__dict__  # type: ignore[attr-defined]


class ServiceConfigError(ServiceError, ValueError):
    """A field of the connection is unknown, missing or invalid; nothing was sent.

    :param reason: what is wrong.
    :param source: where it is wrong, such as ``"connection 'service_default'"``; the message begins with it.
    """

    ends_wait = final = True

    def __init__(self, reason: str, *, source: str | None = None) -> None:
        self.reason = reason
        super().__init__(f"{source}: {reason}" if source else reason)


class ServiceInputError(ServiceError, ValueError):
    """An argument cannot be used in a request; nothing was sent.

    :param reason: what is wrong.
    :param not_done: what was not done because of it, such as ``"nothing was written"``; the message ends with it.
    """

    ends_wait = final = True

    def __init__(self, reason: str, *, not_done: str | None = None) -> None:
        self.reason = reason
        super().__init__(f"{reason}; {not_done}" if not_done else reason)


class ServiceFileError(ServiceError):
    """A file could not be read while it was sent, so the call was aborted before the server had received all of it."""

    repeat_may_help = True


class ServiceLookupError(ServiceError, LookupError):
    """A name matches no object, or several of them."""

    ends_wait = final = True


class ServiceApiError(ServiceError):
    """A call that did not succeed.

    :param reason: what went wrong, in words.
    :param method: HTTP method of the call.
    :param path: path of the call below the API root, without the query.
    :param status: HTTP status, or None when no answer came.
    :param server_message: the server's own message, or None.
    :param hint: what the caller can do about it.
    :param retry_after: seconds that the server asked to wait, or None.
    :param headers: headers of the answer by their names in lower case, without cookies and secrets; None if the error
        does not keep the answer.
    :param body: body of the answer, without secrets: the value of JSON of up to 64 KiB; else the beginning as text, up
        to 4 KiB; None if it is empty, or the error does not keep the answer.
    """

    def __init__(
        self,
        reason: str,
        *,
        method: str,
        path: str,
        status: int | None = None,
        server_message: str | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> None:
        self.reason, self.method, self.path = reason, method, path
        self.status, self.server_message, self.hint = status, server_message, hint
        self.retry_after = retry_after
        self.headers, self.body = headers, body
        super().__init__(f"{method} {path}: {self.explanation}")

    @property
    def explanation(self) -> str:
        """What went wrong and what to do about it, without the call."""
        parts = [self.reason]
        if self.status is not None:
            parts.append(f"(HTTP {self.status})")
        if self.server_message:
            parts.append(f"- the service says: {self.server_message!r}")
        asked = self.retry_after or 0.0
        pause = (
            f"The service asks to wait {f'{asked:.0f} s' if asked < 86_400 else 'more than a day'}" if asked else None
        )
        return ". ".join(filter(None, (" ".join(parts), pause, self.hint)))

    def with_hint(self, hint: str) -> Self:
        """The same error with another hint."""
        names = ("method", "path", "status", "server_message", "retry_after", "headers", "body")
        return type(self)(self.reason, hint=hint, **{name: getattr(self, name) for name in names})


class ServiceUnreachableError(ServiceApiError):
    """No connection could be made, or it broke before an answer arrived."""

    repeat_may_help = True


class ServiceConnectionLostError(ServiceUnreachableError):
    """The connection broke after the request was sent: the server may have acted on it."""

    not_processed = False


class ServiceProxyError(ServiceUnreachableError):
    """The proxy could not be reached, or refused the request; nothing reached the service."""

    @property
    def repeat_may_help(self) -> bool:  # type: ignore[override]
        """Whether the proxy may accept the same call later: not if it requires a password or forbids the call."""
        return self.status is None or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR


class ServiceTlsError(ServiceUnreachableError):
    """The TLS handshake failed: a wrong scheme, or a certificate that is not trusted."""

    repeat_may_help = False


class ServiceTimeoutError(ServiceApiError):
    """The whole answer did not arrive within the timeout: the server may have acted on the request."""

    repeat_may_help = True
    not_processed = False


class ServiceStartingError(ServiceApiError):
    """404 with an HTML page: the server is still starting, or the address is not an API root."""

    repeat_may_help = True


class ServiceUnauthorizedError(ServiceApiError):
    """401: the key is missing, wrong, expired or revoked."""

    ends_wait = True


class ServiceForbiddenError(ServiceApiError):
    """403 for a reason other than a missing scope or a license."""

    ends_wait = True


class ServiceMissingScopeError(ServiceForbiddenError):
    """403: the key, or the role of its user, does not hold the scope that the operation needs."""

    final = True


class ServiceNotLicensedError(ServiceForbiddenError):
    """403, or 401 of an older server: the plan of the server does not include the feature."""

    final = True


class ServiceNotFoundError(ServiceApiError):
    """404: the object does not exist, or the key may not see it."""


class ServiceNotOfferedError(ServiceApiError):
    """404 or 405 on the route itself, or 400 for a parameter: this server's version does not offer it."""

    ends_wait = final = True


class ServiceConflictError(ServiceApiError):
    """409: the state of the object does not allow the operation."""


class ServiceWebhookTakenError(ServiceConflictError):
    """409: the workflow cannot become active, because an active workflow holds one of its webhooks."""

    ends_wait = final = True


class ServiceInvalidRequestError(ServiceApiError):
    """400, 415, 422 or 431: the server refused the request as it stands."""

    ends_wait = final = True


class ServiceRateLimitedError(ServiceApiError):
    """429: too many requests."""

    repeat_may_help = True


class ServicePayloadTooLargeError(ServiceApiError):
    """413: the body is larger than the server accepts (16 MiB by default)."""

    ends_wait = final = True


class ServiceServerError(ServiceApiError):
    """5xx: the server failed while handling the request, and may have acted on it."""

    not_processed = False


class ServiceUnavailableError(ServiceServerError):
    """502, 503 or 504: the server, or a proxy in front of it, could not answer at the time.

    Also 400 or 401 of an older server whose database failed.
    """

    repeat_may_help = True

    @property
    def not_processed(self) -> bool:  # type: ignore[override]
        """Whether the server turned the request away: a 401, or a 503 with a Retry-After header."""
        is_turned_away = self.status == HTTPStatus.SERVICE_UNAVAILABLE and self.retry_after is not None
        return is_turned_away or self.status == HTTPStatus.UNAUTHORIZED


class ServiceRedirectError(ServiceApiError):
    """A redirect that was not followed, because it leads elsewhere and the key must not be sent there."""

    ends_wait = True

    @property
    def not_processed(self) -> bool:  # type: ignore[override]
        """Whether no workflow can have run: from a webhook, the redirect may be the answer of its workflow."""
        return not self.path.startswith("/webhook/")


class ServiceUnexpectedResponseError(ServiceApiError):
    """An answer that is not JSON, or not of the documented shape."""

    not_processed = False


class ServiceUnreadableResponseError(ServiceUnexpectedResponseError):
    """An answer that claims to be JSON but cannot be read: it was cut off, or changed on its way."""

    repeat_may_help = True


class ServiceAnswerTooLargeError(ServiceApiError):
    """An answer above the connection's extra ``max_answer_mib``: the server may have acted on the request."""

    not_processed = False


class ServiceWebhookNotLiveError(ServiceApiError):
    """404 from the webhook itself: its workflow is not active, or was activated only just now. Nothing ran."""

    repeat_may_help = is_momentary = True


class ServiceWebhookRefusedError(ServiceApiError):
    """The webhook refused the call: its own authentication, its method, or the form of the body. Nothing ran."""


class ServiceWebhookUncertainError(ServiceApiError):
    """429 or 502 to 504: a proxy or the workflow itself answered. Only the list of executions shows what ran."""

    repeat_may_help = True
    not_processed = False


class ServiceNotPublishedError(ServiceApiError):
    """The MCP endpoint found no published version: the workflow is not active, or was activated only just now."""

    repeat_may_help = is_momentary = True


class ServiceMcpRefusedError(ServiceApiError):
    """The MCP endpoint refused the workflow or its trigger: a person must change the workflow first. Nothing ran."""

    ends_wait = final = True


class ServiceRunInDoubtError(ServiceError):
    """A start was requested, but its execution cannot be found. It may have run: another start could duplicate it."""

    not_processed = False
    ends_wait = final = True


class ServiceRunNotKeptError(ServiceRunInDoubtError):
    """A start was confirmed, but its execution was not kept, or not long enough to be seen.

    :param workflow_id: the workflow that ran.
    """

    def __init__(self, message: str, *, workflow_id: str) -> None:
        super().__init__(message)
        self.workflow_id = workflow_id


class ServiceRunNotStartedError(ServiceError):
    """A start was requested, and provably no execution was created."""


class ServiceInsertInDoubtError(ServiceError):
    """Rows were inserted, or may have been, before an insert or an append failed: a repeat would insert them again."""

    not_processed = False
    ends_wait = final = True


class ServiceTaskKilledError(ServiceError):
    """The task was killed while it was starting an execution or waiting for it, or before its deployment wrote."""

    not_processed = False


class ServiceWaitError(ServiceError):
    """The execution could not be observed. That says nothing about how it ended, so trying the task again may help."""

    not_processed = False


class ServiceExecutionFailedError(ServiceError):
    """The execution that a task started has failed or did not end in time.

    Trying the task again starts a new one, unless the old one could not be stopped and still runs.
    """

    not_processed = False


class ServiceUnhealthyError(ServiceError):
    """Workflows breach a threshold of a health check. Trying the task again reads their executions anew."""


class ServiceDeploymentError(ServiceError):
    """A deployment of workflows failed, and its changes were rolled back, as far as the message says.

    :param message: why it failed, and which changes were rolled back.
    :param final: whether a person must change something first, such as the definitions. If not, a repeat may reach the
        goal, even if something could not be rolled back.
    """

    not_processed = False

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


__all__ = [name for name in dir() if name.startswith("Service")]
