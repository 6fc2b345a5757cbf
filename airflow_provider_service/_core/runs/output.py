"""Show what the nodes of an execution did, even during a wait, and read what a task returns about one that has ended.

That is a list of its nodes and, on request, the output of one of them, without the secrets of the call.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import OUTPUT_CHOICES, read_count, require, require_output
from airflow_provider_service._core.object_storage import require_place, write_whole
from airflow_provider_service._core.runs.searching import RUN_KEY_FIELD, RUN_KEY_HEADER
from airflow_provider_service._core.text_table import cut, text_table
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._execution_data import (
    NodeRun,
    files_of,
    is_behind,
    last_node,
    nodes_of,
    output_of,
    with_data,
)
from airflow_provider_service.client._http.redaction import SIGNED, redacted, secrets_in
from airflow_provider_service.client._values import one_line

if TYPE_CHECKING:
    from airflow_provider_service._core.arguments import ReturnOutput
    from airflow_provider_service._core.runs.request import MakeHeaders, RunRequest
    from airflow_provider_service.client import ServiceClient, ServiceConfig
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Execution


log = logging.getLogger(__name__)

#: Nodes in a table or a result, in the order in which they began.
MAX_LISTED_NODES = 50
#: Characters of a node's message in a table.
MAX_NODE_MESSAGE_CHARS = 200
#: Seconds between two reads of the nodes during a wait in a worker; the pause doubles while nothing changes.
LEAST_NODES_PAUSE_SECONDS = 30.0
#: Longest pause in seconds between two reads of the nodes, which cost the server more than a poll.
LONGEST_NODES_PAUSE_SECONDS = 300.0
#: MiB of data from which the nodes of an execution are not read before it ends.
MAX_WATCHED_MIB = 1
#: MiB of data from which an execution is read only for its output, not to show its nodes.
MAX_SHOWN_MIB = 8
#: Bytes of JSON that a task returns as output, at most.
MAX_OUTPUT_BYTES = 48_000
#: Files of the output that the log describes.
MAX_FILES = 20
#: Times that the data of a succeeded execution is read until it is complete.
MAX_OUTPUT_READS = 5
#: Seconds between these reads.
OUTPUT_PAUSE_SECONDS = 0.25

#: Shows the nodes of an execution.
Show = Callable[[Sequence[NodeRun]], None]


def node_table(nodes: Sequence[NodeRun]) -> Iterator[str]:
    rows = [
        (
            cut(one_line(node.node)),
            node.status or "-",
            f"{node.seconds:.3f}",
            str(node.items),
            cut(one_line(node.message or ""), MAX_NODE_MESSAGE_CHARS),
        )
        for node in nodes[:MAX_LISTED_NODES]
    ]
    yield from text_table(("node", "status", "seconds", "items", "message"), rows)
    if len(nodes) > MAX_LISTED_NODES:
        yield f"and {len(nodes) - MAX_LISTED_NODES} more nodes"


def log_nodes(nodes: Sequence[NodeRun]) -> None:
    for line in node_table(nodes) if nodes else ():
        log.info("%s", line)


def read_small(config: ServiceConfig, execution_id: str, max_mib: int) -> Execution:
    """Read an execution with its data in a single try, unless the data is large."""
    from airflow_provider_service.client import ServiceClient

    limit = min(max_mib, config.max_answer_mib)
    with ServiceClient(config.one_try(max_answer_mib=limit)) as client:
        return client.executions.get(execution_id, include_data=True)


def nodes_in_short(nodes: Sequence[NodeRun] | None) -> dict[str, Any]:
    if not nodes:
        return {"nodes": None, "node_count": None}
    shown = [
        {"node": node.node, "status": node.status, "seconds": node.seconds, "items": node.items}
        for node in nodes[:MAX_LISTED_NODES]
    ]
    return {"nodes": shown, "node_count": len(nodes)}


class NodeLog:
    """Logs the nodes when they change; the service shows them during a wait, or if the workflow saves its progress."""

    def __init__(
        self,
        config: ServiceConfig,
        execution_id: str,
        *,
        show: Show = log_nodes,
        pauses: tuple[float, float] = (LEAST_NODES_PAUSE_SECONDS, LONGEST_NODES_PAUSE_SECONDS),
    ) -> None:
        self._config, self._execution_id, self._show = config, execution_id, show
        self._least_pause, self._longest_pause = pauses
        self._pause = self._least_pause
        self._next = clock().monotonic() + self._pause
        self._shown: list[NodeRun] = []

    def poll(self) -> None:
        """Read the nodes if it is time, and log them if they have changed; a failure does not affect the wait."""
        if clock().monotonic() < self._next:
            return
        nodes = self._read()
        has_changed = bool(nodes) and nodes != self._shown
        self._pause = self._least_pause if has_changed else min(2 * self._pause, self._longest_pause)
        self._next = max(self._next, clock().monotonic() + self._pause)
        if has_changed:
            self._shown = nodes
            self._show(nodes)

    def _read(self) -> list[NodeRun]:
        try:
            return nodes_of(read_small(self._config, self._execution_id, MAX_WATCHED_MIB))
        except errors.ServiceAnswerTooLargeError:
            self._next = float("inf")
        except errors.ServiceError as error:
            log.debug("The nodes of execution %s cannot be shown: %s", self._execution_id, error)
        return []


@dataclass(frozen=True)
class WantedOutput:
    #: None for the last node.
    node: str | None
    max_items: int | None
    #: Where to write output that is too large for XCom; None to leave such output out.
    path: str | None
    #: What XCom may hold; a person may see more.
    max_bytes: float = MAX_OUTPUT_BYTES

    @classmethod
    def of(cls, return_output: ReturnOutput, max_items: int | None, path: str | None) -> WantedOutput | None:
        """Read the arguments of an operator or the hook; None if no output is wanted."""
        require_output("return_output", return_output)
        if return_output == "none":
            require(max_items is None, "max_output_items has no effect with return_output='none'")
            require(path is None, "output_path has no effect with return_output='none'")
            return None
        node = None if return_output in OUTPUT_CHOICES else return_output["node"]  # type: ignore[index]
        return cls(node, None if max_items is None else read_count("max_output_items", max_items), path)

    def require_in(self, request: RunRequest) -> None:
        if self.path is not None:
            require_place("output_path", self.path)
        names = [str(node.get("name")) for node in request.nodes]
        require(
            self.node is None or self.node in names,
            f"{request.label} has no node named {self.node!r} whose output could be returned; its nodes: "
            f"{', '.join(map(repr, names[:20]))}; nothing was started",
        )


def read_end(
    client: ServiceClient,
    execution_id: str,
    wanted: WantedOutput | None,
    headers: MakeHeaders,
    *,
    show: Show | None = None,
) -> dict[str, Any]:
    """Log or show what the nodes did, and return it with the wanted output, which hides the values of ``headers``."""
    execution = read_to_show(client, execution_id) if wanted is None else _whole(client, execution_id)
    nodes = nodes_of(execution) if execution is not None else None
    (show or log_nodes)(nodes or [])
    shown = nodes_in_short(nodes)
    return shown if wanted is None else {**shown, **_output(execution, wanted, headers)}


def read_output(client: ServiceClient, execution_id: str, wanted: WantedOutput) -> dict[str, Any]:
    return _output(_whole(client, execution_id), wanted, headers=None)


def no_output() -> dict[str, Any]:
    return {"output": None, "output_items": None, "output_path": None}


def read_to_show(client: ServiceClient, execution_id: str) -> Execution | None:
    """Read an execution with its data, in one try; None if it cannot be read, or if the data is large."""
    config = client.transport.config
    try:
        return read_small(config, execution_id, MAX_SHOWN_MIB)
    except errors.ServiceAnswerTooLargeError:
        most = min(MAX_SHOWN_MIB, config.max_answer_mib)
        log.info("The nodes of execution %s are not shown, because its data exceeds %d MiB", execution_id, most)
    except errors.ServiceError as error:
        log.warning("The nodes of execution %s cannot be shown: %s", execution_id, error)
    return None


def _whole(client: ServiceClient, execution_id: str) -> Execution | None:
    try:
        return read_whole(client, execution_id)
    except errors.ServiceServerError as error:
        if error.repeat_may_help:
            raise
        raise error.with_hint(
            f"Execution {execution_id} has ended, and only its output cannot be read; with return_output='none', the "
            "task does without it"
        ) from None
    except (errors.ServiceAnswerTooLargeError, errors.ServiceUnexpectedResponseError) as error:
        log.warning("The output of execution %s cannot be read: %s", execution_id, error)
        return None


def read_whole(client: Resources, execution_id: str) -> Execution:
    execution = with_data(client, execution_id)
    for _ in range(MAX_OUTPUT_READS - 1):
        # With SQLite, version 1 of the service shows the end of an execution before the data of its last nodes.
        if not is_behind(execution):
            break
        clock().sleep(OUTPUT_PAUSE_SECONDS)
        execution = with_data(client, execution_id)
    return execution


def _output(execution: Execution | None, wanted: WantedOutput, headers: MakeHeaders | None) -> dict[str, Any]:
    """Return the output of a node, in a file if it is too large; ``output_items`` also counts what is left out."""
    if execution is None:
        return no_output()
    node = last_node(execution) if wanted.node is None else wanted.node
    items = output_of(execution, node or "")
    if node is None or items is None:
        whose = "its last node" if wanted.node is None else f"node {wanted.node!r}"
        log.warning("Execution %s does not show the output of %s", execution.id, whose)
        return no_output()
    _report_files(execution, node)
    count = len(items)
    if wanted.max_items is not None and count > wanted.max_items:
        log.warning("The output has %d items; only the first %d are returned", count, wanted.max_items)
        items = items[: wanted.max_items]
    if headers is not None:
        items = _without_secrets(items, headers)
    return {**no_output(), "output_items": count, **_small_enough(items, wanted)}


def _report_files(execution: Execution, node: str) -> None:
    files = files_of(execution, node)
    if not files:
        return
    log.warning(
        "Files that node '%s' produced are not in the output, because the service's API does not return their content; "
        "let the workflow store them, for example in object storage: %d",
        cut(one_line(node)),
        len(files),
    )
    for file in files[:MAX_FILES]:
        words = file.name or "without a name", file.mime_type or "of unknown type", file.size or "of unknown size"
        log.warning(
            "Item %d, field '%s': %s", file.item, cut(one_line(file.field)), one_line("; ".join(map(cut, words)))
        )


def _small_enough(items: list[Any], wanted: WantedOutput) -> dict[str, Any]:
    text = json.dumps(items)
    if len(text) <= wanted.max_bytes:
        return {"output": items}
    if wanted.path is None:
        log.warning("The output has %d bytes, more than %d, and was left out", len(text), MAX_OUTPUT_BYTES)
        return {}
    written = write_whole(wanted.path, text.encode())
    log.info("The output has %d bytes and was written to %s", len(text), written)
    return {"output_path": written}


def _without_secrets(items: list[Any], headers: MakeHeaders) -> list[Any]:
    # A workflow that passes on its input outputs the headers of the call, or the fields of the form.
    try:
        # The login of the webhook's connection may be a user name, or the name of a header.
        sent, doubtful = headers("basicAuth"), headers("headerAuth")
    except errors.ServiceInputError:  # the connection has no login, because it signs a token for each call
        return list(redacted(items, _secrets(headers("jwtAuth")), shapes=[SIGNED]))
    return list(redacted(items, _secrets(sent), doubtful=_secrets(doubtful)))


def _secrets(sent: Mapping[str, str]) -> dict[str, list[str]]:
    return {**{name: secrets_in(value) for name, value in sent.items()}, RUN_KEY_HEADER: [], RUN_KEY_FIELD: []}
