"""Starting executions: exactly one for each task run."""

from typing import Any, NotRequired, TypedDict


class NodeInShort(TypedDict):
    """A node that ran in an execution: its status, duration in seconds, and number of items."""

    node: str
    status: str | None
    seconds: float
    items: int


class RunResult(TypedDict):
    """An execution that a task started or resumed.

    Without ``wait_for_completion``, the result has only ``execution_id``, ``workflow_id`` and ``url``. ``nodes`` holds
    the first 50 of ``node_count`` nodes that ran. With ``return_output``, ``output`` holds the JSON items, or None if
    they are too large or not available; ``output_items`` is the number of items that the node returned, and
    ``output_path`` the file that was written. If the execution was not kept and ``on_vanished="succeed"``, unknown
    values are None. ``retry_of`` is the id of the execution that was retried.
    """

    execution_id: str | None
    workflow_id: str | None
    url: str | None
    status: NotRequired[str | None]
    started_at: NotRequired[str | None]
    stopped_at: NotRequired[str | None]
    nodes: NotRequired[list[NodeInShort] | None]
    node_count: NotRequired[int | None]
    output: NotRequired[list[Any] | None]
    output_items: NotRequired[int | None]
    output_path: NotRequired[str | None]
    retry_of: NotRequired[str]
