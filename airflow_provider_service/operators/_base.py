"""What every operator shares: connection, hook, link and the refusal of bad arguments."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_service.links import page_url

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.hooks.service import ServiceHook
    from airflow_provider_service.links import ServiceLink

T = TypeVar("T")


class ServiceBaseOperator(BaseOperator):
    """Base of the operators.

    :param service_conn_id: Airflow connection of type ``service``.
    """

    template_fields: Sequence[str] = ("service_conn_id",)
    ui_color = "#ede9fe"

    def __init__(self, *, service_conn_id: str = "service_default", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.service_conn_id = service_conn_id

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


def fail(message: str) -> NoReturn:
    """Fail the task now: a retry would meet the same.

    :raises AirflowFailException: always.
    """
    from airflow.providers.common.compat.sdk import AirflowFailException

    raise AirflowFailException(message)


def require(condition: object, message: str) -> None:
    """Refuse an argument; a retry would meet the same.

    :raises AirflowFailException: the condition does not hold.
    """
    if not condition:
        fail(message)


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
    require(value in choices, f"{name} must be one of {', '.join(choices)}, not {value!r}")


def as_list(name: str, value: object) -> list[Any]:
    """Read an argument that holds several values; one text is refused, since it would count as its letters.

    :raises AirflowFailException: text, a mapping, or a single value.
    """
    # A mapped task's output arrives as a lazy sequence, not as a list.
    is_many = isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes))
    require(is_many, f"{name} must be a list, not {type(value).__name__}")
    return list(value)  # type: ignore[call-overload, no-any-return]


def read_moment(name: str, value: datetime | str | None) -> datetime | None:
    """Read a moment that may be text, such as a rendered template; without time zone it means UTC.

    :raises AirflowFailException: text that is no moment.
    """
    if not value or isinstance(value, datetime):
        return value or None
    from airflow_provider_service.client.moments import parse_moment

    try:
        return parse_moment(value)
    except ValueError:
        fail(f"{name} must be a moment such as 2026-01-31T00:00:00Z, not {value!r}")
