"""Every operation of the contract: one method, what it sends, what it reads, and how it fails."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests_mock
from pydantic import BaseModel

from airflow_provider_service.client import errors
from airflow_provider_service.client._client import Resources

from . import samples
from .calling import Call, Pages
from .clients import KEY, ROOT, Client
from .contract import CONTRACT
from .operation_calls import CALLS

JSON = {"Content-Type": "application/json; charset=utf-8"}


def documented(call: Call) -> Any:
    """The part of an answer that a caller gets: the items of pages, the content of an envelope."""
    if isinstance(call.answer, Pages):
        return call.answer.items
    return call.answer["data"] if isinstance(call.answer, dict) and set(call.answer) == {"data"} else call.answer


def calls_with(condition: Callable[[Call], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", [*filter(condition, CALLS)], ids=lambda call: call.operation)


each_call = calls_with(lambda call: True)
each_page_call = calls_with(lambda call: isinstance(call.answer, Pages))
each_json_call = calls_with(lambda call: call.answer is not None)
each_modelled_call = calls_with(lambda call: CONTRACT[call.operation]["response"] in ("object", "page", "array"))
# A schema may be any object, so that no object has another shape.
each_shaped_call = calls_with(lambda call: documented(call) not in (None, samples.CREDENTIAL_SCHEMA))
each_call_with_ids = calls_with(lambda call: "{" in CONTRACT[call.operation]["path"])


def run(client: Resources, call: Call, *args: Any) -> Any:
    """Make the call, with other positional arguments if given, and read all that it iterates over."""
    resource, method = call.calls.split(".")
    result = getattr(getattr(client, resource), method)(*(args or call.args), **call.options)
    return list(result) if isinstance(result, Iterator) else result


def serve(server: requests_mock.Mocker, call: Call) -> None:
    status = CONTRACT[call.operation]["success_status"]
    answers = call.answer.answers() if isinstance(call.answer, Pages) else [call.answer]
    server.register_uri(requests_mock.ANY, requests_mock.ANY, [_answer(status, answer) for answer in answers])


def _answer(status: int, answer: Any) -> dict[str, Any]:
    return {"status_code": status, "json": answer, "headers": JSON} if answer is not None else {"status_code": status}


def refuse(server: requests_mock.Mocker, status: int, answer: Any) -> None:
    server.register_uri(requests_mock.ANY, requests_mock.ANY, status_code=status, json=answer, headers=JSON)


def sent_body(request: Any) -> Any:
    if request.body is None:
        return None
    assert request.headers["Content-Type"] == "application/json"
    return json.loads(request.body)


def body_names(body: Any) -> set[str]:
    """The names of a body as the contract writes them."""
    if isinstance(body, list):
        return {f"[].{name}" for item in body for name in item}
    nested = body.get("additionalOptions", {}) if body else {}
    return {f"additionalOptions.{name}" for name in nested} or set(body or {})


def wire(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.to_wire()  # type: ignore[attr-defined]
    if isinstance(value, list):
        return [wire(item) for item in value]
    return {name: wire(item) for name, item in value.items()} if isinstance(value, dict) else value


def unmodelled(value: Any, place: str = "") -> list[str]:
    """Where a model keeps a field that it does not name."""
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        extra = [f"{place}.{name}" for name in value.model_extra or {}]
        return extra + [found for name, item in fields.items() for found in unmodelled(item, f"{place}.{name}")]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in items for found in unmodelled(item, place)]


def exactly(value: Any) -> Any:
    """A representation in which 1, 1.0 and True differ."""
    return value if isinstance(value, bytes) else json.dumps(value, sort_keys=True)


def test_each_operation_has_one_method_and_each_method_one_operation() -> None:
    resources = {name for name, member in vars(Resources).items() if isinstance(member, cached_property)}
    resources -= {"mcp", "webhooks"}  # no part of the API
    client = Client()
    methods = {
        f"{resource}.{name}"
        for resource in resources
        for name, _ in inspect.getmembers(getattr(client, resource), inspect.ismethod)
        if not name.startswith("_")
    }

    assert len(CALLS) == len(CONTRACT)
    assert {call.operation for call in CALLS} == set(CONTRACT)
    assert sorted(call.calls for call in CALLS) == sorted(methods)


@each_call
def test_the_table_gives_every_argument(client: Client, call: Call) -> None:
    resource, method = call.calls.split(".")
    signature = inspect.signature(getattr(getattr(client, resource), method))

    assert set(signature.bind(*call.args, **call.options).arguments) == set(signature.parameters)


@each_call
def test_sends_what_the_contract_says(client: Client, server: requests_mock.Mocker, call: Call) -> None:
    fact = CONTRACT[call.operation]
    serve(server, call)

    run(client, call)

    first, *others = server.request_history
    path, _, query = first.url.removeprefix(ROOT).partition("?")
    assert f"{first.method} {first.url.removeprefix(ROOT)}" == call.sends
    assert first.method == fact["method"]
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", fact["path"]), path)
    assert not set(query) & set("+ :,[]$()@/'!*;#?\"")
    assert {name for request in server.request_history for name, _ in parse_qsl(urlsplit(request.url).query)} == set(
        fact["query"]
    )
    assert sent_body(first) == call.body
    assert body_names(call.body) == {*fact["body_required"], *fact["body_optional"]}
    assert first.headers["X-SERVICE-API-KEY"] == KEY
    assert len(others) == isinstance(call.answer, Pages)


@each_page_call
def test_a_second_page_repeats_every_filter(client: Client, server: requests_mock.Mocker, call: Call) -> None:
    paginated = CONTRACT[call.operation]["paginated"]
    serve(server, call)

    run(client, call)

    first, second = (dict(parse_qsl(urlsplit(request.url).query)) for request in server.request_history)
    first.pop("offset", None)
    assert second == {**first, **({"cursor": "next=="} if paginated == "cursor" else {"skip": "1"})}


@each_call
def test_reads_the_documented_answer_without_loss(client: Client, server: requests_mock.Mocker, call: Call) -> None:
    serve(server, call)

    result = run(client, call)

    assert unmodelled(result) == []
    assert exactly(wire(result)) == exactly(documented(call))


@each_modelled_call
def test_keeps_fields_of_later_servers(client: Client, server: requests_mock.Mocker, call: Call) -> None:
    known = documented(call)
    expected = [of_a_later_server(item) for item in known] if isinstance(known, list) else of_a_later_server(known)
    in_envelope = isinstance(call.answer, Pages) or known is not call.answer
    refuse(server, 200, {"data": expected, "count": 2} if in_envelope else expected)

    assert exactly(wire(run(client, call))) == exactly(expected)


def of_a_later_server(item: dict[str, Any]) -> dict[str, Any]:
    changed = {"status": "dreaming"} if "status" in item else {}
    return {**item, **changed, "futureField": {"someNumber": 1.0}}


@each_call
def test_a_documented_error_becomes_its_exception(client: Client, server: requests_mock.Mocker, call: Call) -> None:
    status, message, kind = call.refusal
    refuse(server, status, {"message": message})

    with pytest.raises(errors.ServiceApiError) as caught:
        run(client, call)

    method, _, path = call.sends.partition("?")[0].partition(" ")
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.server_message) == (status, message)
    assert f"{method} {path}: " in str(caught.value)
    assert message in str(caught.value)
    assert KEY not in str(caught.value) + repr(caught.value)


@each_call
def test_a_missing_scope_is_named(client: Client, server: requests_mock.Mocker, call: Call) -> None:
    scope = CONTRACT[call.operation]["scope"]
    refuse(server, 403, {"message": "Forbidden"})

    with pytest.raises(errors.ServiceForbiddenError) as caught:
        run(client, call)

    assert isinstance(caught.value, errors.ServiceMissingScopeError) == (scope != "none")
    assert scope == "none" or any(f"'{name}'" in str(caught.value) for name in scope.split(","))


@pytest.mark.parametrize("answer", [42, {"unknown": []}, {"data": [42]}, [42]], ids=str)
@each_shaped_call
def test_an_answer_of_another_shape_is_reported(
    client: Client, server: requests_mock.Mocker, call: Call, answer: Any
) -> None:
    refuse(server, 200, answer)

    with pytest.raises(errors.ServiceUnexpectedResponseError, match="not of the documented shape") as caught:
        run(client, call)

    assert call.sends.partition("?")[0].partition(" ")[2] in str(caught.value)


@each_json_call
def test_a_page_instead_of_json_is_reported(client: Client, server: requests_mock.Mocker, call: Call) -> None:
    html = {"Content-Type": "text/html; charset=utf-8"}
    server.register_uri(requests_mock.ANY, requests_mock.ANY, text="<html><b>Sign in</b></html>", headers=html)

    with pytest.raises(errors.ServiceUnexpectedResponseError, match=r"text/html, not JSON.*Sign in"):
        run(client, call)


@pytest.mark.parametrize("bad", ["", " ", ".", "..", None, True, 1.5, b"1"], ids=repr)
@each_call_with_ids
def test_a_value_that_cannot_be_an_id_is_not_sent(
    client: Client, server: requests_mock.Mocker, call: Call, bad: Any
) -> None:
    for place in range(CONTRACT[call.operation]["path"].count("{")):
        args = [*call.args]
        args[place] = bad

        with pytest.raises(errors.ServiceInputError, match="nothing was sent"):
            run(client, call, *args)

    assert server.request_history == []


REPEATED = {
    "archive_workflow",
    "publish_workflow",
    "activate_workflow",
    "unpublish_workflow",
    "deactivate_workflow",
    "stop_execution",
    "update_credential",
    "test_credential",
    "change_user_role",
    "change_project_user_role",
    "update_folder",
    "generate_audit",
}


@each_call
def test_only_harmless_repeats_are_made(server: requests_mock.Mocker, call: Call) -> None:
    client = Client(retry_deadline=30)
    repeated = CONTRACT[call.operation]["method"] in ("GET", "PUT", "DELETE") or call.operation in REPEATED
    answers = [{"status_code": 502}, *([_answer(200, call.answer)] if not isinstance(call.answer, Pages) else [])]
    if isinstance(call.answer, Pages):
        answers += [_answer(200, answer) for answer in call.answer.answers()]
    server.register_uri(requests_mock.ANY, requests_mock.ANY, answers)

    if repeated:
        run(client, call)
        assert len(client.pauses) == 1
    else:
        with pytest.raises(errors.ServiceUnavailableError):
            run(client, call)
        assert (client.pauses, len(server.request_history)) == ([], 1)


def test_each_operation_has_one_route_in_the_simulator() -> None:
    pytest.importorskip("starlette")
    import airflow_provider_service.simulator._routes  # noqa: F401
    from airflow_provider_service.simulator._gateway import OPERATIONS

    routes = {
        name: (operation.name, operation.method, operation.path, operation.scope or "none")
        for name, operation in OPERATIONS.items()
    }

    assert routes == {name: (name, fact["method"], fact["path"], fact["scope"]) for name, fact in CONTRACT.items()}
