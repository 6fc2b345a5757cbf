"""Check requests and answers against the published contract.

The rules of OpenAPI 3.0 are those of ``openapi-core``: path templates, types and styles of query values, ``nullable``,
``readOnly`` names that a request must not hold, media types, multipart forms. It takes the objects of ``requests`` as
they went over the wire, and it says all that is wrong, not only the first.
"""

from __future__ import annotations

import email
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from jsonschema import ValidationError
from openapi_core import Config, OpenAPI
from openapi_core.contrib.requests import RequestsOpenAPIRequest, RequestsOpenAPIResponse


class PublishedContract:
    """One OpenAPI document.

    :param document: as the server publishes it.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        # A name that the document does not list may not be sent; an answer may hold more than the document says.
        self._sent = OpenAPI.from_dict(dict(document), Config(additional_properties_default_policy="forbid"))
        self._answered = OpenAPI.from_dict(dict(document))

    def route(self, request: requests.PreparedRequest) -> str:
        """Method and path of the operation that a request is for, the names in the path blanked: ``GET /tags/{}``."""
        return f"{request.method} {re.sub(r'{[^}]*}', '{}', self._find(request).path_result.pattern)}"

    def complaints_about_request(self, request: requests.PreparedRequest) -> list[str]:
        """What in a request differs from the contract; empty if nothing does."""
        errors = self._sent.iter_request_errors(RequestsOpenAPIRequest(request))
        return [*self._query_complaints(request), *self._form_complaints(request), *_texts(errors)]

    def complaints_about_answer(self, response: requests.Response) -> list[str]:
        """What in an answer, including its status, differs from the contract; empty if nothing does."""
        exchange = RequestsOpenAPIRequest(response.request), RequestsOpenAPIResponse(response)
        return _texts(self._answered.iter_response_errors(*exchange))

    def _find(self, request: requests.PreparedRequest) -> Any:
        assert request.method is not None
        address, _, _ = str(request.url).partition("?")
        return self._sent.request_validator.path_finder.find(request.method.lower(), address)

    def _query_complaints(self, request: requests.PreparedRequest) -> Iterator[str]:
        # openapi-core passes over names that are not described, and takes "yes" for a boolean.
        described = {
            (parameter / "name").read_str(): (parameter / "schema" / "type").read_str("")
            for parameter in self._find(request).operation.get("parameters", ())
            if (parameter / "in").read_str() == "query"
        }
        for name, value in parse_qsl(urlsplit(str(request.url)).query, keep_blank_values=True):
            if name not in described:
                yield f"query parameter '{name}' is not published"
            elif described[name] == "boolean" and value not in ("true", "false"):
                yield f"query parameter '{name}': {value!r} is not 'true' or 'false'"

    def _form_complaints(self, request: requests.PreparedRequest) -> Iterator[str]:
        # openapi-core drops the fields of a form that are not described.
        form = self._find(request).operation.get("requestBody", {}).get("content", {}).get("multipart/form-data")
        if form is None:
            return
        described = (form / "schema" / "properties").read_value()
        for name in _form_names(request):
            if name not in described:
                yield f"form field '{name}' is not published"


def _form_names(request: requests.PreparedRequest) -> list[str]:
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    parts = email.message_from_bytes(head + bytes(request.body or b"")).get_payload()  # type: ignore[arg-type]
    return [str(part.get_param("name", header="content-disposition")) for part in parts]  # type: ignore[union-attr]


def _texts(errors: Iterable[Exception]) -> list[str]:
    return [text for error in errors for text in _describe(error)]


def _describe(error: Exception) -> Iterator[str]:
    causes = getattr(error.__cause__, "schema_errors", ())
    place = f"{error.name}: " if hasattr(error, "name") else ""
    for cause in map(_innermost, causes):
        yield f"{place}{_where(cause)} {_what(cause)}"
    if not causes:
        yield str(error.__cause__ or error)


def _innermost(error: ValidationError) -> ValidationError:
    """What is wrong with the alternative that fits best, if there are several."""
    while error.context:
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    return error


def _where(error: ValidationError) -> str:
    """The place, the same for all items of a list."""
    return "$" + "".join("[]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)


def _what(error: ValidationError) -> str:
    """The message, with the kind of a value in place of a long one."""
    kind = {list: "a list", dict: "an object", type(None): "null"}.get(type(error.instance))
    if error.instance is None and error.validator == "type":  # openapi-core reports a null twice, in two ways
        return f"null is not of type '{error.validator_value}'"
    return error.message.replace(repr(error.instance), kind) if kind else error.message
