"""The base of all resources: calling an endpoint and reading its answer into models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypedDict, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import Unpack

from airflow_provider_service.client._http.encoding import fill_path, to_json
from airflow_provider_service.client._http.paging import PagingError, follow_cursor
from airflow_provider_service.client._http.transport import Transport
from airflow_provider_service.client._models import NULL, wire_time
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.errors import ServiceInputError, ServiceUnexpectedResponseError

T = TypeVar("T")

#: A date and time given by a caller: a datetime with a time zone, or text that is sent unchanged.
Moment = datetime | str


class CallOptions(TypedDict, total=False):
    """Options of ``Transport.call`` that endpoints use."""

    scope: str
    query: Mapping[str, Any]
    body: Any
    repeatable: bool
    timeout: float | None


class Resource:
    """Base of the resource classes.

    :param transport: sends the requests.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _call(self, returns: type[T], method: str, path: str, *ids: str | int, **options: Unpack[CallOptions]) -> T:
        return read(returns, self._transport.call(method, path, *ids, **options), method, fill_path(path, ids))

    def _run(self, method: str, path: str, *ids: str | int, **options: Unpack[CallOptions]) -> None:
        self._transport.call(method, path, *ids, **options)

    def _pages(
        self,
        item: type[T],
        path: str,
        *ids: str | int,
        scope: str,
        query: Mapping[str, Any] | None = None,
        limit: int | None = None,
        page_size: int | None = None,
        follow: Callable[..., Iterator[dict[str, Any]]] = follow_cursor,
    ) -> Iterator[T]:
        """Iterate over the items of a list endpoint; each page is requested when the iteration reaches it."""
        target = fill_path(path, ids)

        def fetch(paging: dict[str, Any]) -> dict[str, Any]:
            page = self._transport.call("GET", path, *ids, scope=scope, query={**(query or {}), **paging})
            if not isinstance(page, dict) or not isinstance(page.get("data"), list):
                raise _unexpected("a page has no list named 'data'", "GET", target)
            if not isinstance(page.get("nextCursor"), (str, type(None))):
                raise _unexpected("a page's 'nextCursor' is not text", "GET", target)
            if not isinstance(page.get("count", 0), int):
                raise _unexpected("a page's 'count' is not a whole number", "GET", target)
            return page

        def items() -> Iterator[T]:
            try:
                for value in values:
                    yield read(item, value, "GET", target)
            except PagingError as error:
                raise ServiceUnexpectedResponseError(
                    f"the list does not advance: {error}; the items read so far are incomplete",
                    method="GET",
                    path=target,
                ) from None

        values = follow(fetch, page_size=page_size or self._transport.config.page_size, limit=limit)
        return items()


def read(kind: type[T], answer: Any, method: str, path: str) -> T:
    try:
        return _adapter(kind).validate_python(answer)  # type: ignore[no-any-return, arg-type]
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the answer"
        raise _unexpected(one_line(f"{place}: {first['msg']}"), method, path) from None


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _unexpected(what: str, method: str, path: str) -> ServiceUnexpectedResponseError:
    return ServiceUnexpectedResponseError(
        f"the answer is not of the documented shape: {what}", method=method, path=path
    )


def without_none(**fields: Any) -> dict[str, Any]:
    """Leave out the fields of a body that are None. NULL becomes null."""
    return {name: None if value is NULL else value for name, value in fields.items() if value is not None}


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ServiceInputError(f"{message}; nothing was sent")


def require_id(name: str, value: object) -> None:
    """Refuse an empty id or name in a filter, because the service would then select everything."""
    require(value is None or (isinstance(value, str) and bool(value.strip())), f"{name} must not be empty")


def moment(name: str, value: Moment | None) -> str | None:
    if not isinstance(value, datetime):
        return value
    require(value.tzinfo is not None, f"{name} must have a time zone, unlike {value.isoformat()}")
    return wire_time(value)


def json_text(value: Any) -> str | None:
    return None if value is None else to_json(value)


def references(ids: Sequence[str]) -> list[dict[str, str]]:
    require(not isinstance(ids, str), "ids must be a list of texts, not a single text")
    return [{"id": object_id} for object_id in ids]
