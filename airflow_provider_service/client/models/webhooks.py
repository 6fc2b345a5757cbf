"""Webhooks: the nodes that start a workflow, and what they answer."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Their payload travels in the query.
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD"})


class WebhookTrigger(NamedTuple):
    """A webhook node of a workflow.

    :param node: name of the node.
    :param method: HTTP method that it takes.
    :param path: path below ``/webhook/``.
    :param authentication: how it authenticates its callers: ``none``, ``basicAuth``, ``headerAuth`` or ``jwtAuth``.
    """

    node: str
    method: str
    path: str
    authentication: str = "none"

    @property
    def has_body(self) -> bool:
        """Whether the payload travels as a body, and not in the query."""
        return self.method not in METHODS_WITHOUT_BODY


class WebhookAnswer(NamedTuple):
    """What a webhook answered: the status, and the JSON value or text. Any status here means that a run may exist."""

    status: int
    body: Any
