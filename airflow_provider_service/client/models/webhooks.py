"""Webhooks: the nodes that start a workflow, and their answers."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Methods whose payload is sent in the query.
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD"})


class WebhookTrigger(NamedTuple):
    """A webhook node of a workflow.

    :param node: name of the node.
    :param method: HTTP method that it accepts.
    :param path: path below ``/webhook/``.
    :param authentication: how it authenticates its callers: ``none``, ``basicAuth``, ``headerAuth`` or ``jwtAuth``.
    """

    node: str
    method: str
    path: str
    authentication: str = "none"

    @property
    def has_body(self) -> bool:
        """Whether the payload is sent as a body rather than in the query."""
        return self.method not in METHODS_WITHOUT_BODY


class WebhookAnswer(NamedTuple):
    """The answer of a webhook: its status, and its JSON value or text. Whatever the status, a run may exist."""

    status: int
    body: Any
