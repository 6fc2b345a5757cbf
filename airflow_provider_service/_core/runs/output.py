"""Read what a task returns about an execution that has ended: its nodes and, on request, the output of one node."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_fixed

from airflow_provider_service._airflow.arguments import OUTPUT_CHOICES, read_count, require, require_output
from airflow_provider_service._core.object_storage import require_place, write_whole
from airflow_provider_service._core.runs.nodes import Show, log_nodes, nodes_in_short, read_small
from airflow_provider_service._core.runs.search import RUN_KEY_FIELD, RUN_KEY_HEADER
from airflow_provider_service._core.text_table import cut
from airflow_provider_service.client._execution_data import (
    files_of,
    is_behind,
    last_node,
    nodes_of,
    output_of,
    with_data,
)
from airflow_provider_service.client._http.redaction import SIGNED, redacted, secrets_in
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.errors import (
    ServiceAnswerTooLargeError,
    ServiceError,
    ServiceInputError,
    ServiceServerError,
    ServiceUnexpectedResponseError,
)

if TYPE_CHECKING:
    from airflow_provider_service._airflow.task_arguments import ReturnOutput
    from airflow_provider_service._core.runs.request import MakeHeaders, RunRequest
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

MAX_OUTPUT_BYTES = 48_000
#: Larger executions are read only for their output, not to show their nodes.
MAX_SHOWN_MIB = 8
#: Files that the log describes.
MAX_FILES = 20
#: How often the data of a succeeded execution is read until it is complete, and the pause in between.
MAX_READS, SETTLING_SECONDS = 5, 0.25


@dataclass(frozen=True)
class WantedOutput:
    """The choice of the output that a task returns.

    :param node: name of the node; None for the last one.
    :param max_items: maximum number of items; None for all.
    :param path: where to write output that is too large for XCom; None to leave such output out.
    """

    node: str | None
    max_items: int | None
    path: str | None

    @classmethod
    def of(cls, return_output: ReturnOutput, max_items: int | None, path: str | None) -> WantedOutput | None:
        """Read the arguments of an operator or the hook; None if no output is wanted.

        :raises ServiceInputError: an argument is invalid, or has no effect without output.
        """
        require_output("return_output", return_output)
        if return_output == "none":
            require(max_items is None, "max_output_items has no effect with return_output='none'")
            require(path is None, "output_path has no effect with return_output='none'")
            return None
        node = None if return_output in OUTPUT_CHOICES else return_output["node"]  # type: ignore[index]
        return cls(node, None if max_items is None else read_count("max_output_items", max_items), path)

    def require_in(self, request: RunRequest) -> None:
        """Require, before anything is started, that the node exists and that the file can be written.

        :raises ServiceInputError: the workflow has no such node, or the file cannot be written.
        """
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
    """Read an execution that has ended, and log what its nodes did.

    :param wanted: the output to read as well, if any.
    :param headers: makes the headers of the call, whose values are hidden in the output.
    :param show: shows the nodes; None to log them.
    :returns: ``{"nodes", "node_count"}`` and, if output is wanted, what :func:`_output` returns.
    """
    execution = read_to_show(client, execution_id) if wanted is None else _whole(client, execution_id)
    nodes = nodes_of(execution) if execution is not None else None
    (show or log_nodes)(nodes or [])
    shown = nodes_in_short(nodes)
    return shown if wanted is None else {**shown, **_output(execution, wanted, headers)}


def read_output(client: ServiceClient, execution_id: str, wanted: WantedOutput) -> dict[str, Any]:
    """Read the output of a node of any execution, whoever started it, as :func:`_output` returns it."""
    return _output(_whole(client, execution_id), wanted, headers=None)


def nothing_of(wanted: WantedOutput | None) -> dict[str, Any]:
    """What :func:`read_end` returns for an execution that cannot be read."""
    shown = nodes_in_short(None)
    return shown if wanted is None else {**shown, **no_output()}


def no_output() -> dict[str, Any]:
    """What :func:`read_output` returns for an execution that does not show its output."""
    return {"output": None, "output_items": None, "output_path": None}


def read_to_show(client: ServiceClient, execution_id: str) -> Execution | None:
    """Read an execution with its data, to show its nodes; None if it cannot be read, or if the data is large.

    Nothing depends on it, so there is only one try.
    """
    config = client.transport.config
    try:
        return read_small(config, execution_id, MAX_SHOWN_MIB)
    except ServiceAnswerTooLargeError:
        most = min(MAX_SHOWN_MIB, config.max_answer_mib)
        log.info("The nodes of execution %s are not shown, because its data exceeds %d MiB", execution_id, most)
    except ServiceError as error:
        log.warning("The nodes of execution %s cannot be shown: %s", execution_id, error)
    return None


def _whole(client: ServiceClient, execution_id: str) -> Execution | None:
    try:
        return read_whole(client, execution_id)
    except ServiceServerError as error:
        if error.repeat_may_help:
            raise
        raise error.with_hint(
            f"Execution {execution_id} has ended, and only its output cannot be read; with return_output='none', the "
            "task does without it"
        ) from None
    except (ServiceAnswerTooLargeError, ServiceUnexpectedResponseError) as error:
        log.warning("The output of execution %s cannot be read: %s", execution_id, error)
        return None


def read_whole(client: Resources, execution_id: str) -> Execution:
    """Read an execution with its data, as soon as that is complete."""
    # With SQLite, version 1 of the service shows the end of an execution before the data of its last nodes.
    settling = Retrying(
        retry=retry_if_result(is_behind),
        stop=stop_after_attempt(MAX_READS),
        wait=wait_fixed(SETTLING_SECONDS),
        retry_error_callback=lambda last: last.outcome.result(),  # type: ignore[union-attr]
    )
    return settling(with_data, client, execution_id)


def _output(execution: Execution | None, wanted: WantedOutput, headers: MakeHeaders | None) -> dict[str, Any]:
    """Return the output of a node: ``{"output", "output_items", "output_path"}``.

    ``output`` contains the items, unless they are hidden or too large; ``output_items`` is their total number, and
    ``output_path`` is the file that contains them if they were too large.
    """
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
    return {**no_output(), "output_items": count, **_small_enough(items, wanted.path)}


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
    for one in files[:MAX_FILES]:
        described = one.name or "without a name", one.mime_type or "of unknown type", one.size or "of unknown size"
        log.warning(
            "Item %d, field '%s': %s", one.item, cut(one_line(one.field)), one_line("; ".join(map(cut, described)))
        )


def _small_enough(items: list[Any], path: str | None) -> dict[str, Any]:
    text = json.dumps(items)
    if len(text) <= MAX_OUTPUT_BYTES:
        return {"output": items}
    if path is None:
        log.warning("The output has %d bytes, more than %d, and was left out", len(text), MAX_OUTPUT_BYTES)
        return {}
    written = write_whole(path, text.encode())
    log.info("The output has %d bytes and was written to %s", len(text), written)
    return {"output_path": written}


def _without_secrets(items: list[Any], headers: MakeHeaders) -> list[Any]:
    # A workflow that passes on its input outputs the headers of the call, or the fields of the form.
    try:
        # The login of the webhook's connection may be a user name, or the name of a header.
        sent, doubtful = headers("basicAuth"), headers("headerAuth")
    except ServiceInputError:  # the connection has no login, because it signs a token for each call
        return list(redacted(items, _secrets(headers("jwtAuth")), shapes=[SIGNED]))
    return list(redacted(items, _secrets(sent), doubtful=_secrets(doubtful)))


def _secrets(sent: Mapping[str, str]) -> dict[str, list[str]]:
    """List the secrets that a call carried, by name of the header."""
    headers = {name: secrets_in(value) for name, value in sent.items()}
    return {**headers, RUN_KEY_HEADER: [], RUN_KEY_FIELD: []}
