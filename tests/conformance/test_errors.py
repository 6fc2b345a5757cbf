"""The shapes of errors, JSON or not."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import (
    ServiceNotOfferedError,
    ServicePayloadTooLargeError,
    ServiceServerError,
    ServiceStartingError,
)

from .expecting import unique
from .target import Target

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "request/body must have required property 'name'"),
        ({"name": 1}, "request/body/name Expected string, received number"),
        ({"name": "x", "foo": 1}, "request/body Unrecognized key(s) in object: 'foo'"),
    ],
    ids=["missing", "type", "unknown"],
)
def test_a_body_of_the_lenient_family(service: Target, body: dict[str, object], text: str) -> None:
    answer = service.raw("POST", "/tags", json=body)
    assert answer.status_code == 400
    assert set(answer.json()) == {"message"}
    is_strict = service.differs("families of endpoints") or service.differs("family of new tags")
    if text.startswith("request/body must have") or not is_strict:
        assert answer.json()["message"] == text


@pytest.mark.covers("insert_data_table_rows")
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "request/body must have required property 'data'"),
        ({"data": 1}, "request/body/data must be array"),
        (
            {"data": [{}], "returnType": "none"},
            "request/body/returnType must be equal to one of the allowed values: count, id, all",
        ),
    ],
    ids=["missing", "type", "enum"],
)
def test_a_body_of_the_strict_family(service: Target, body: dict[str, object], text: str) -> None:
    answer = service.raw("POST", "/data-tables/0123456789abcdef/rows", json=body)
    assert (answer.status_code, answer.json()) == (400, {"message": text})


@pytest.mark.covers("get_data_table", "get_user")
def test_ids_that_have_a_form(service: Target) -> None:
    for path, text in (
        ("/data-tables/x", 'request/params/dataTableId must match format "nanoid"'),
        ("/users/x", 'request/params/id must match format "identifier"'),
    ):
        answer = service.raw("GET", path)
        assert (answer.status_code, answer.json()) == (400, {"message": text})


def test_unknown_query_parameters(service: Target) -> None:
    answer = service.raw("GET", "/users?foo=1")
    assert (answer.status_code, answer.json()) == (400, {"message": "Unknown query parameter 'foo'"})
    lenient = service.raw("GET", "/tags?foo=1")
    assert lenient.status_code == (400 if service.differs("families of endpoints") else 200)


@pytest.mark.parametrize("media_type", [None, "text/plain"])
def test_a_body_of_no_or_another_type(service: Target, media_type: str | None) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    answer = service.raw("POST", "/tags", data="x" if media_type else None, headers=headers)
    assert answer.status_code == 415
    assert answer.json() == {"message": f"unsupported media type {media_type or 'undefined'}"}


def test_malformed_json_is_an_html_500(service: Target) -> None:
    answer = service.raw("POST", "/tags", data='{"name":', headers=JSON)
    assert answer.status_code == 500
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "<pre>" in answer.text


def test_too_large_a_body_is_an_html_413(service: Target) -> None:
    answer = service.raw("POST", "/tags", json={"name": "x" * (16 * 1024 * 1024)})
    assert answer.status_code == 413
    assert answer.headers["Content-Type"].startswith("text/html")
    with pytest.raises(ServicePayloadTooLargeError):
        service.client.tags.create("x" * (16 * 1024 * 1024))


def test_another_version_of_the_api_is_an_html_404(service: Target) -> None:
    answer = service.outside("POST", "/api/v2/tags", json={})
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "Cannot POST /api/v2/tags" in answer.text
    with service.client_of(api_version=2) as client, pytest.raises(ServiceStartingError):
        client.tags.create(unique())


def test_unknown_routes(service: Target) -> None:
    for method, path in (("GET", "/nothing"), ("PATCH", "/tags")):
        with pytest.raises(ServiceNotOfferedError):
            service.client.request(method, path, repeatable=False)


def test_a_server_error_is_distinguished_from_a_refusal(service: Target) -> None:
    if service.differs("forged cursors"):
        return
    with pytest.raises(ServiceServerError) as caught:
        service.client.request("GET", "/tags", query={"cursor": "eyJsaW1pdCI6MSwib2Zmc2V0IjoieCJ9"})
    assert caught.value.server_message == "Internal server error"


def test_a_preflight_is_empty(service: Target) -> None:
    answer = service.raw("OPTIONS", "/tags", key=None)
    assert (answer.status_code, answer.content) == (204, b"")


def test_health_needs_no_key(service: Target) -> None:
    for path in ("/healthz", "/healthz/readiness"):
        answer = service.outside("GET", path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_an_unchanged_answer_is_not_sent_again(service: Target) -> None:
    tag = service.client.tags.create(unique("t"))
    answer = service.raw("GET", f"/tags/{tag.id}")
    again = service.raw("GET", f"/tags/{tag.id}", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    service.client.tags.delete(tag.id)
