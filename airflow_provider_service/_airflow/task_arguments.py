"""Types of task arguments, for type checkers, and the values that many arguments share."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping, Sequence
    from datetime import datetime
    from typing import Required, TypedDict

    from airflow.providers.common.compat.sdk import DAG, TaskGroup, XComArg

T = TypeVar("T")

#: The type of a template field: a value, which may contain templates, or the output of another task.
Templated = Union[T, "XComArg"]
#: A duration: a timedelta, or a number of seconds.
Duration = timedelta | float
#: How a task ends if its execution cannot be found.
OnVanished = Literal["fail", "succeed"]
ON_VANISHED = get_args(OnVanished)
#: The start method of a workflow: "auto", or the name of a class in _core/runs/start_methods.
Start = Literal["auto", "webhook", "mcp", "bridge"]
STARTS = get_args(Start)
#: What a retry of a task does if the execution of the previous attempt failed.
OnRetry = Literal["new", "retry_execution"]
ON_RETRY = get_args(OnRetry)

#: Which changes a poll of source control shows: those to pull from the branch, or those to push to it.
SourceControlDirection = Literal["pull", "push"]
#: Whether there must be changes, or none.
SourceControlState = Literal["changed", "unchanged"]

#: Defaults of a wait, in seconds: its timeout, the time between two polls, and for how long polls may keep failing.
DAY_SECONDS = 86_400.0
POLL_SECONDS = 10.0
#: The shortest time between two polls: a shorter one would only burden the service.
LEAST_POLL_SECONDS = 0.05
FAULT_TOLERANCE_SECONDS = 300.0
#: Pause between two polls while polls fail, if the interval is longer.
FAULT_PAUSE_SECONDS = 10.0
#: Default timeout, in seconds, of a call whose answer takes long.
LONG_CALL_SECONDS = 300.0
#: Default number of rows per insert; larger inserts are not faster.
BATCH_ROWS = 10_000
#: Default bytes of rows per insert: half of what the server accepts by default.
BATCH_BYTES = 8 * 1024 * 1024


def as_rendered(value: Templated[T]) -> T:
    """Return an argument unchanged, with the type that it has after Airflow has rendered it; only for type checkers."""
    return value  # type: ignore[return-value]


# Nothing needs these types at run time, and creating them would be a good part of an operator's import time.
if TYPE_CHECKING:

    class OutputOfNode(TypedDict):
        """The output of a node that is named."""

        node: str

    #: Which output of a run to return.
    ReturnOutput = Literal["none", "last_node"] | OutputOfNode
    _Callbacks = Callable[..., Any] | list[Callable[..., Any]] | None

    class TaskArguments(TypedDict, total=False):
        """The arguments of Airflow's own ``BaseOperator``; some versions of Airflow do not know all of them."""

        task_id: Required[str]
        allow_nested_operators: bool
        dag: DAG | None
        default_args: dict[str, Any] | None
        depends_on_past: bool
        do_xcom_push: bool
        doc: str | None
        doc_json: str | None
        doc_md: str | None
        doc_rst: str | None
        doc_yaml: str | None
        email: str | Sequence[str] | None
        email_on_failure: bool
        email_on_retry: bool
        end_date: datetime | None
        execution_timeout: timedelta | None
        executor: str | None
        executor_config: dict[str, Any] | None
        ignore_first_depends_on_past: bool
        inlets: Any
        logger_name: str | None
        map_index_template: str | None
        max_active_tis_per_dag: int | None
        max_active_tis_per_dagrun: int | None
        max_retry_delay: Duration | None
        multiple_outputs: bool
        on_execute_callback: _Callbacks
        on_failure_callback: _Callbacks
        on_retry_callback: _Callbacks
        on_skipped_callback: _Callbacks
        on_success_callback: _Callbacks
        outlets: Any
        owner: str
        params: MutableMapping[str, Any] | None
        pool: str | None
        pool_slots: int
        post_execute: Callable[..., None] | None
        pre_execute: Callable[..., None] | None
        priority_weight: int
        queue: str
        render_template_as_native_obj: bool | None
        resources: dict[str, Any] | None
        retries: int | None
        retry_delay: Duration
        retry_exponential_backoff: float
        retry_policy: Any
        run_as_user: str | None
        start_date: datetime | None
        task_display_name: str | None
        task_group: TaskGroup | None
        trigger_rule: str
        wait_for_downstream: bool
        wait_for_past_depends_before_skipping: bool
        weight_rule: Any

    class SensorArguments(TaskArguments, total=False):
        """What Airflow's own ``BaseSensorOperator`` takes besides ``poke_interval``."""

        exponential_backoff: bool
        max_wait: Duration | None
        mode: str
        never_fail: bool
        silent_fail: bool
        soft_fail: bool
        timeout: Duration | None
