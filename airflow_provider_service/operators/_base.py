"""What every operator shares: connection, hook, link and the refusal of bad arguments."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_service.links import page_url
from airflow_provider_service.operators._rendering import revealed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.hooks.service import ServiceHook
    from airflow_provider_service.links import ServiceLink

T = TypeVar("T")

#: The largest whole number that JSON holds everywhere.
MAX_COUNT = 2**53
#: Thirty years; far beyond that sockets and clocks overflow.
MAX_SECONDS = 10**9


class ServiceBaseOperator(BaseOperator):
    """Base of the operators.

    :param service_conn_id: Airflow connection of type ``service``.
    """

    template_fields: Sequence[str] = ("service_conn_id",)
    #: Template fields whose empty text means something.
    blank_fields: Sequence[str] = ()
    ui_color = "#ede9fe"

    def __init__(self, *, service_conn_id: str = "service_default", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.service_conn_id = service_conn_id

    def execute(self, context: Context) -> Any:
        """Check what was rendered and do the task's work; what a retry would meet again fails the task now."""
        with _failing_at_once():
            self._refuse_blank_fields()
            return self.perform(context)

    @abstractmethod
    def perform(self, context: Context) -> Any:
        """Do the task's work and return what goes to XCom."""

    def _refuse_blank_fields(self) -> None:
        # A template that renders to nothing would often mean "all".
        for name in self.template_fields:
            value = revealed(getattr(self, name))
            is_blank = isinstance(value, str) and not value.strip()
            require(not is_blank or name in self.blank_fields, f"{name} is empty: give a value, or leave it out")

    @cached_property
    def hook(self) -> ServiceHook:
        """The hook of this task's connection."""
        from airflow_provider_service.hooks.service import ServiceHook

        return ServiceHook(self.service_conn_id)

    def link_to(self, context: Context, link: ServiceLink, page: str, *ids: str | int) -> str:
        """Point the task's button at a page of the service and return the address."""
        url = page_url(self.hook.config.base_url, page, *ids)
        link.push(context, url)
        return url


@contextmanager
def _failing_at_once() -> Iterator[None]:
    """Turn the errors that a retry would meet again into failures that are not retried."""
    from airflow.providers.common.compat.sdk import AirflowFailException

    from airflow_provider_service.client import errors
    from airflow_provider_service.client.lookup import ServiceLookupError

    final = (
        errors.ServiceConfigError,
        errors.ServiceInputError,
        errors.ServiceInvalidRequestError,
        errors.ServiceMissingScopeError,
        errors.ServiceNotLicensedError,
        errors.ServiceNotOfferedError,
        errors.ServicePayloadTooLargeError,
        ServiceLookupError,
    )
    try:
        yield
    except final as error:
        raise AirflowFailException(str(error)) from error


def fail(message: str) -> NoReturn:
    """Fail the task now: a retry would meet the same.

    :raises AirflowFailException: always.
    """
    from airflow.providers.common.compat.sdk import AirflowFailException

    raise AirflowFailException(message)


def refuse(name: str, expected: str, value: object) -> NoReturn:
    """Refuse an argument's value.

    :raises AirflowFailException: always.
    """
    from airflow_provider_service.client.errors import shown

    fail(f"{name} must be {expected}, not {shown(value)}")


def require(condition: object, message: str) -> None:
    """Refuse an argument; a retry would meet the same.

    :raises AirflowFailException: the condition does not hold.
    """
    if not condition:
        fail(message)


def require_one_of(**arguments: object) -> None:
    """Refuse none, or several, of arguments of which one must be given.

    :raises AirflowFailException: not exactly one of them is there.
    """
    given = [name for name, value in arguments.items() if value is not None]
    require(len(given) == 1, f"give either {' or '.join(arguments)}, not {' and '.join(given) or 'none of them'}")


def required(name: str, value: T | None) -> T:
    """Return an argument that must be given.

    :raises AirflowFailException: it is None or empty.
    """
    if not value:
        fail(f"{name} is required")
    return value


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse an argument that is none of its documented words.

    :raises AirflowFailException: an unknown word.
    """
    if value not in choices:
        refuse(name, f"one of {', '.join(choices)}", value)


def require_flag(name: str, value: object, *, optional: bool = False) -> None:
    """Refuse an argument that is neither True nor False: other values would silently count as one of them.

    :param optional: whether None will do.
    :raises AirflowFailException: another value.
    """
    if not (isinstance(value, bool) or (optional and value is None)):
        refuse(name, "True, False or None" if optional else "True or False", value)


def require_mapping(name: str, value: object) -> None:
    """Refuse an argument that does not map names to values.

    :raises AirflowFailException: another value.
    """
    require(isinstance(value, Mapping), f"{name} must be a mapping, not {type(value).__name__}")


def read_count(name: str, value: int | str, *, least: int = 1) -> int:
    """Read a whole number, which may be text, such as a rendered template.

    :param least: the smallest one allowed.
    :raises AirflowFailException: another value.
    """
    # Python refuses to read texts of thousands of digits.
    is_digits = isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdecimal()
    number = int(value) if is_digits else value
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= MAX_COUNT:
        refuse(name, f"a whole number from {least} to {MAX_COUNT}", value)
    return number


def read_seconds(name: str, value: float | str, *, or_zero: bool = False) -> float:
    """Read a number of seconds, which may be text, such as one of the environment.

    :param or_zero: whether 0 will do.
    :raises AirflowFailException: another value, or one that is not above 0.
    """
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not (0 < seconds <= MAX_SECONDS or (or_zero and seconds == 0)):
        refuse(name, f"a number of seconds above 0, up to {MAX_SECONDS}", value)
    return seconds


def check_wait(task: Any) -> None:
    """Refuse arguments of a wait that are out of their range.

    :param task: with ``deferrable``, ``on_vanished`` and ``fault_tolerance``.
    :raises AirflowFailException: one of them can not be used.
    """
    require_flag("deferrable", task.deferrable)
    require_choice("on_vanished", task.on_vanished, ("fail", "succeed"))
    task.fault_tolerance = read_seconds("fault_tolerance", task.fault_tolerance, or_zero=True)


def as_list(name: str, value: object) -> list[Any]:
    """Read an argument that holds several values; one text is refused, since it would count as its letters.

    :raises AirflowFailException: text, a mapping, or a single value.
    """
    # A mapped task's output arrives as a lazy sequence, not as a list.
    is_many = isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes))
    require(is_many, f"{name} must be a list, not {type(value).__name__}")
    return list(value)  # type: ignore[call-overload, no-any-return]


def as_texts(name: str, value: object) -> list[str]:
    """Read an argument that holds several texts.

    :raises AirflowFailException: one text, or an item that is empty or no text.
    """
    items = as_list(name, value)
    for item in items:
        if not isinstance(item, str) or not item.strip():
            refuse(f"each of {name}", "text that is not empty", item)
    return items


def read_moment(name: str, value: datetime | str | None) -> datetime | None:
    """Read a moment that may be text, such as a rendered template; without time zone it means UTC.

    :raises AirflowFailException: another value, or text that is no moment.
    """
    if value is None or isinstance(value, datetime):
        return value
    from airflow_provider_service.client.moments import parse_moment

    expected = "a moment such as 2026-01-31T00:00:00Z"
    if not isinstance(value, str):
        refuse(name, expected, value)
    try:
        return parse_moment(value)
    except ValueError:
        refuse(name, expected, value)
