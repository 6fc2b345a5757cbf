"""The arguments of tasks: their types, for type checkers, the values that many share, and their checks.

Each error names the expected and the actual value. This module loads nothing heavy, because arguments that are not
templates are checked while Airflow parses the DAG file.
"""

from __future__ import annotations

import json
import math
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeVar, Union, get_args

from airflow_provider_service.client._values import shown, type_of
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Required, TypedDict

    from airflow.providers.common.compat.sdk import DAG, TaskGroup, XComArg


T = TypeVar("T")
H = TypeVar("H", bound=Hashable)

#: The type of a template field: a value, which may contain templates, or the output of another task.
Templated = Union[T, "XComArg"]
#: A duration: a timedelta, or a number of seconds.
Duration = timedelta | float
#: A duration that may also be text, such as "300", "PT5M", "0:05:00", or a template for one.
TemplatedDuration = Templated[timedelta | float | str]
#: How a task ends if its execution cannot be found.
OnVanished = Literal["fail", "succeed"]
ON_VANISHED = get_args(OnVanished)
#: The start method of a workflow: "auto", or the name of a class in _core/runs/start_methods.
Start = Literal["auto", "webhook", "mcp", "bridge"]
STARTS = get_args(Start)
#: What a retry of a task does if the execution of the previous attempt failed.
OnRetry = Literal["new", "retry_execution"]

#: Which changes a poll of source control shows: those to pull from the branch, or those to push to it.
SourceControlDirection = Literal["pull", "push"]
#: Whether there must be changes, or none.
SourceControlState = Literal["changed", "unchanged"]

#: Default of ``timeout``: a wait ends after a day.
DAY_SECONDS = 86_400.0
#: Default of ``poll_interval``, the time between two polls.
POLL_SECONDS = 10.0
#: Default of ``poke_interval`` of a wait for rows.
ROW_POLL_SECONDS = 60.0
#: The shortest time between two polls: a shorter one would only burden the service.
LEAST_POLL_SECONDS = 0.05
#: Default of ``fault_tolerance``: for how long polls may keep failing before the task fails.
FAULT_TOLERANCE_SECONDS = 300.0
#: Pause between two polls while polls fail, if the interval is longer.
FAULT_PAUSE_SECONDS = 10.0
#: Default timeout, in seconds, of a call whose answer takes long.
LONG_CALL_SECONDS = 300.0
#: Default number of rows per insert; larger inserts are not faster.
BATCH_ROWS = 10_000
#: Default bytes of rows per insert: half of what the server accepts by default.
BATCH_BYTES = 8 * 1024 * 1024

#: The largest whole number that every JSON implementation holds exactly.
MAX_COUNT = 2**53
#: Thirty years; sockets and clocks overflow far beyond that.
MAX_SECONDS = 10**9
#: Values of ``return_output`` besides the name of a node.
OUTPUT_CHOICES = ("none", "last_node")


def as_rendered(value: Templated[T]) -> T:
    """Return an argument unchanged, with the type that it has after Airflow has rendered it; only for type checkers."""
    return value  # type: ignore[return-value]


def has_template(text: str) -> bool:
    return any(mark in text for mark in ("{{", "{%", "{#"))


def is_literal(value: object) -> bool:
    """Whether a value is None, a number, text without templates, or a list of them: Airflow leaves it as it is."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(is_literal, value))
    return not has_template(value) if isinstance(value, str) else isinstance(value, (int, float, timedelta, type(None)))


def refuse(name: str, expected: str, value: object) -> NoReturn:
    raise ServiceInputError(f"{name} must be {expected}, not {shown(value)}")


def require(condition: object, message: str) -> None:
    if not condition:
        raise ServiceInputError(message)


def require_source(source: object, what_is_empty: str, loss: str, *, allow_empty: bool) -> None:
    """Refuse to delete, replace, archive or rotate something because a source came back empty: one rule for all."""
    require(
        source or allow_empty,
        f"{what_is_empty}, and {loss}; nothing was deleted. If that is what you want, give allow_empty=True",
    )


def require_items(payload: object) -> None:
    is_list = isinstance(payload, (list, tuple)) and bool(payload)
    require(
        payload is None or isinstance(payload, Mapping) or (is_list and all(isinstance(x, Mapping) for x in payload)),  # type: ignore[attr-defined]
        f"a sub-workflow takes a mapping or a list of mappings as its payload, not {shown(payload)}; nothing was "
        "started",
    )


def is_structure(text: str) -> bool:
    """Whether a text is that of a mapping or a list."""
    for read in (json.loads, literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return isinstance(read(text.strip()), (dict, list))
    return False


def require_one_of(**arguments: object) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    instead = f", not {' and '.join(given)}" if given else ""
    require(len(given) == 1, f"give either {' or '.join(arguments)}{instead}")


def require_context(context: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse a context that lacks Airflow's own variables, as in a plain call of ``execute({})``."""
    missing = [name for name in names if name not in context]
    require(
        not missing,
        f"the context lacks {' and '.join(map(repr, missing))}, which Airflow gives to a task: execute the task with "
        "run_task of airflow_provider_service.testing, or use ServiceHook without a task; nothing was done",
    )


def required(name: str, value: T | None) -> T:
    if not value:
        raise ServiceInputError(f"{name} is required")
    return value


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        refuse(name, f"one of {', '.join(choices)}", value)


def read_choices(name: str, value: object, choices: Sequence[str]) -> list[Any]:
    chosen = [value] if isinstance(value, str) else as_list(name, value)
    require(chosen, f"{name} must not be empty")
    for choice in chosen:
        require_choice(name, choice, choices)
    return chosen


def require_flag(name: str, value: object, *, optional: bool = False) -> None:
    """Refuse an argument that is neither True nor False, because Python would silently treat it as one of them."""
    if not (isinstance(value, bool) or (optional and value is None)):
        refuse(name, "True, False or None" if optional else "True or False", value)


def require_output(name: str, value: object) -> None:
    """A node must be given as ``{"node": "name"}``: plain text could be a misspelt word."""
    if isinstance(value, str) and value in OUTPUT_CHOICES:
        return
    node = value.get("node") if isinstance(value, Mapping) and len(value) == 1 else None
    if not isinstance(node, str) or not node.strip():
        refuse(name, f'one of {", ".join(OUTPUT_CHOICES)}, or {{"node": "name of the node"}}', value)


def require_mapping(name: str, value: object) -> None:
    require(isinstance(value, Mapping), f"{name} must be a mapping, not {type_of(value)}")


def read_count(name: str, value: int | str, *, least: int = 1) -> int:
    # Python refuses to convert text of thousands of digits.
    is_digits = isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdecimal()
    number = int(value) if is_digits else value
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= MAX_COUNT:
        refuse(name, f"a whole number from {least} to {MAX_COUNT}", value)
    return number


def read_seconds(name: str, value: TemplatedDuration, *, or_zero: bool = False) -> float:
    try:
        number: Any = value.total_seconds() if isinstance(value, timedelta) else value
        seconds = math.nan if isinstance(number, bool) else float(number)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
        if isinstance(value, str):
            from pydantic import TypeAdapter

            with suppress(ValueError):
                seconds = TypeAdapter(timedelta).validate_python(value.strip()).total_seconds()
    if not (0 < seconds <= MAX_SECONDS or (or_zero and seconds == 0)):
        least = "from 0" if or_zero else "above 0"
        refuse(name, f"a timedelta or a number of seconds {least}, up to {MAX_SECONDS}", value)
    return seconds


def as_list(name: str, value: object) -> list[Any]:
    """Read an argument that holds several values. A single text is refused: it would be iterated letter by letter."""
    # The output of a mapped task arrives as a lazy sequence, not as a list.
    is_many = isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes))
    require(is_many, f"{name} must be a list, not {type(value).__name__}")
    return list(value)  # type: ignore[call-overload, no-any-return]


def as_texts(name: str, value: object) -> list[str]:
    items = as_list(name, value)
    for item in items:
        if not isinstance(item, str) or not item.strip():
            refuse(f"each of {name}", "text that is not empty", item)
    return items


def text_or_texts(name: str, value: object) -> list[str]:
    return as_texts(name, [value] if isinstance(value, str) else value)


def repeated(values: Iterable[H]) -> set[H]:
    """Return the values that occur more than once."""
    return {value for value, count in Counter(values).items() if count > 1}


def read_moment(name: str, value: datetime | str | None) -> datetime | None:
    """Read a date and time, which may be text, for example a rendered template; one without a time zone means UTC."""
    if value is None or isinstance(value, datetime):
        return value
    from airflow_provider_service.client._models import parse_moment

    expected = "a date and time such as 2026-01-31T00:00:00Z"
    if not isinstance(value, str):
        refuse(name, expected, value)
    try:
        return parse_moment(value)
    except ValueError:
        refuse(name, expected, value)


#: A check takes an argument's name and value, and refuses a value that is not allowed.
Check = Callable[[str, Any], object]

SECONDS_OR_ZERO: Check = partial(read_seconds, or_zero=True)


def optional(check: Check) -> Check:
    def checked(name: str, value: Any) -> object:
        return value if value is None else check(name, value)

    return checked


def one_of(*words: str) -> Check:
    return partial(require_choice, choices=words)


def some_of(*words: str) -> Check:
    return optional(partial(read_choices, choices=words))


#: The checks of arguments by their annotations; one of the documented values is a ``Literal``, or the name of one.
_CHECKS: Mapping[str, Check] = {
    "bool": require_flag,
    "bool | None": partial(require_flag, optional=True),
    "int": read_count,
    "Duration": read_seconds,
    "TemplatedDuration": read_seconds,
    "ReturnOutput": require_output,
}


def _check_of(annotation: str, names: Mapping[str, Any]) -> Check | None:
    """Return the check for an annotation; None for template fields, and for types that need a check of their own."""
    if annotation in _CHECKS:
        return _CHECKS[annotation]
    if annotation.endswith(" | None"):
        check = _check_of(annotation.removesuffix(" | None"), names)
        return optional(check) if check else None
    if annotation.startswith("Literal["):
        return one_of(*literal_eval(annotation.removeprefix("Literal")))
    words = get_args(names.get(annotation))
    return one_of(*words) if words and all(isinstance(word, str) for word in words) else None


class CheckedArguments:
    """Base of operators and sensors that checks arguments without templates while the DAG file is parsed.

    The annotations in the signature of ``__init__`` say what is allowed. The outermost ``__init__`` within the package
    ends with :meth:`check_arguments`.
    """

    #: The checks by argument; a class names those that its annotations do not say, and each adds to those of its bases.
    #: The check of a template field applies to text without templates; later, to what was rendered.
    checks: ClassVar[Mapping[str, Check]] = {}
    #: The checks of arguments that must fit each other, by their names; a check takes their values in this order.
    joint_checks: ClassVar[Mapping[tuple[str, ...], Callable[..., object]]] = {}
    #: The objects that arguments name by id or by name.
    references: ClassVar[Sequence[Any]] = ()
    template_fields: Sequence[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inherited: Any = super(cls, cls)
        own = vars(cls)
        annotated = {}
        # The arguments that a user's subclass adds are its own affair.
        if "__init__" in own and cls.__module__.startswith("airflow_provider_service."):
            for name, annotation in own["__init__"].__annotations__.items():
                if check := _check_of(annotation, own["__init__"].__globals__):
                    annotated[name] = check
        cls.checks = {**annotated, **inherited.checks, **own.get("checks", {})}
        cls.joint_checks = {**inherited.joint_checks, **own.get("joint_checks", {})}

    @classmethod
    def partial(cls, **kwargs: Any) -> Any:
        """Check the arguments that all mapped tasks share; Airflow creates the tasks only when they run."""
        cls.check_given(kwargs)
        return super().partial(**kwargs)  # type: ignore[misc]

    @classmethod
    def check_given(cls, arguments: Mapping[str, Any]) -> None:
        plain = arguments.keys() - set(cls.template_fields)
        for name in cls.checks.keys() & arguments.keys():
            if name in plain or is_literal(arguments[name]):
                cls.checks[name](name, arguments[name])
        for names, check in cls.joint_checks.items():
            if plain.issuperset(names):
                check(*map(arguments.__getitem__, names))

    def check_arguments(self, *, are_rendered: bool = False) -> None:
        """Check the arguments; template fields that are not text, or have templates, only if they are rendered."""
        for name, check in self.checks.items():
            if are_rendered or name not in self.template_fields or is_literal(getattr(self, name)):
                check(name, getattr(self, name))
        for names, joint_check in self.joint_checks.items():
            values = [getattr(self, name) for name in names]
            templates = (value for name, value in zip(names, values, strict=True) if name in self.template_fields)
            if are_rendered or all(map(is_literal, templates)):
                joint_check(*values)
        for reference in self.references:
            reference.check(self, are_rendered=are_rendered)


# Nothing needs these types at run time, and creating them would be a good part of an operator's import time.
if TYPE_CHECKING:

    class OutputOfNode(TypedDict):
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

    class UntimedSensorArguments(TaskArguments, total=False):
        """What Airflow's own ``BaseSensorOperator`` takes besides ``poke_interval`` and ``timeout``."""

        exponential_backoff: bool
        max_wait: Duration | None
        mode: str
        never_fail: bool
        silent_fail: bool
        soft_fail: bool

    class SensorArguments(UntimedSensorArguments, total=False):
        """What Airflow's own ``BaseSensorOperator`` takes besides ``poke_interval``."""

        timeout: TemplatedDuration | None
