"""Webhooks: the nodes that start a workflow, and their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

#: Methods whose payload is sent in the query.
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD"})

#: A segment of a path that begins with this is a parameter.
PARAMETER_MARK = ":"

_EXECUTION_ID = re.compile(r"[0-9]{1,18}")


class WebhookTrigger(NamedTuple):
    """A webhook node of a workflow.

    :param node: name of the node.
    :param method: HTTP method to call it with.
    :param path: path below ``/webhook/``. A segment that begins with a colon is a parameter, and then the path begins
        with the node's webhook id.
    :param authentication: how it authenticates its callers: ``none``, ``basicAuth``, ``headerAuth`` or ``jwtAuth``.
    :param response_mode: when it answers: ``onReceived`` when the run begins, ``lastNode`` when it ends,
        ``responseNode`` when the run reaches a node that answers.
    """

    node: str
    method: str
    path: str
    authentication: str = "none"
    response_mode: str = "onReceived"

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the parameters in the path, in their order."""
        segments = self.path.split("/")
        return tuple(dict.fromkeys(one[1:] for one in segments if one.startswith(PARAMETER_MARK)))

    @property
    def has_body(self) -> bool:
        """Whether the payload is sent as a body rather than in the query."""
        return self.method not in METHODS_WITHOUT_BODY


class WebhookAnswer(NamedTuple):
    """The answer of a webhook: its status, and its JSON value or text. The workflow may have run despite an error."""

    status: int
    body: Any

    @property
    def execution_id(self) -> str | None:
        """The execution id that the answer contains, or None. It may belong to another execution."""
        named = self.body.get("executionId") if isinstance(self.body, Mapping) else None
        is_id = isinstance(named, (str, int)) and not isinstance(named, bool) and _EXECUTION_ID.fullmatch(str(named))
        return str(named) if is_id else None
