"""The global tag registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
)
from airflow_provider_service.client.models import Tag

from .expecting import NO_ID, refused, unique
from .target import Target

TAKEN = "Tag already exists"


@pytest.fixture
def tag(service: Target) -> Iterator[Tag]:
    made = service.client.tags.create(unique())
    yield made
    if service.raw("GET", f"/tags/{made.id}").ok:
        service.client.tags.delete(made.id)


@pytest.mark.covers("create_tag", "get_tag", "delete_tag")
def test_a_tag_is_made_read_and_deleted(service: Target, tag: Tag) -> None:
    assert service.client.tags.get(tag.id) == tag
    assert set(tag.to_wire()) == {"id", "name", "createdAt", "updatedAt"}

    assert service.client.tags.delete(tag.id).name == tag.name

    with refused(ServiceNotFoundError, "Not Found"):
        service.client.tags.get(tag.id)


@pytest.mark.covers("list_tags", needs=("create_tag",))
def test_tags_are_listed(service: Target, tag: Tag) -> None:
    assert [one for one in service.client.tags.list() if one.id == tag.id] == [tag]


@pytest.mark.covers("update_tag", needs=("create_tag", "get_tag"))
def test_a_tag_is_renamed(service: Target, tag: Tag) -> None:
    name = unique()

    renamed = service.client.tags.update(tag.id, name)

    assert set(renamed.to_wire()) == {"id", "name", "updatedAt"}
    assert service.client.tags.get(tag.id).name == name
    assert service.client.tags.get(tag.id).created_at == tag.created_at


@pytest.mark.covers("update_tag", needs=("create_tag",))
def test_a_tag_is_renamed_to_its_own_name(service: Target, tag: Tag) -> None:
    assert service.client.tags.update(tag.id, tag.name).to_wire() == {"id": tag.id, "name": tag.name}


@pytest.mark.covers("get_tag", "update_tag", "delete_tag")
def test_an_unknown_tag_is_not_found(service: Target) -> None:
    tags = service.client.tags
    for call in (tags.get, lambda tag_id: tags.update(tag_id, unique()), tags.delete):
        with refused(ServiceNotFoundError, "Not Found"):
            call(NO_ID)


@pytest.mark.parametrize("name", ["", "x" * 25])
@pytest.mark.covers("create_tag", "update_tag")
def test_a_name_of_the_wrong_length_counts_as_taken(service: Target, tag: Tag, name: str) -> None:
    with refused(ServiceConflictError, TAKEN):
        service.client.tags.create(name)
    with refused(ServiceConflictError, TAKEN):
        service.client.tags.update(tag.id, name)


@pytest.mark.covers("create_tag", "update_tag")
def test_a_taken_name_is_a_conflict(service: Target, tag: Tag) -> None:
    other = service.client.tags.create(unique())
    try:
        with refused(ServiceConflictError, TAKEN):
            service.client.tags.create(tag.name)
        with refused(ServiceConflictError, TAKEN):
            service.client.tags.update(other.id, tag.name)
    finally:
        service.client.tags.delete(other.id)


@pytest.mark.covers("create_tag", needs=("delete_tag",))
def test_names_are_case_sensitive_and_trimmed(service: Target, tag: Tag) -> None:
    other = service.client.tags.create(f" {tag.name.upper()} ")
    service.client.tags.delete(other.id)

    assert other.name == tag.name.upper()


@pytest.mark.parametrize(
    ("body", "message", "strict"),
    [
        ({}, "request/body must have required property 'name'", None),
        ({"name": 5}, "request/body/name Expected string, received number", "request/body/name must be string"),
        ({"name": "x", "id": NO_ID}, "request/body/id is read-only", None),
        (
            {"name": "x", "foo": 1},
            "request/body Unrecognized key(s) in object: 'foo'",
            "request/body must NOT have additional properties",
        ),
    ],
    ids=str,
)
@pytest.mark.covers("create_tag")
def test_a_body_that_does_not_fit_is_refused(
    service: Target, body: dict[str, object], message: str, strict: str | None
) -> None:
    if strict and (service.differs("families of endpoints") or service.differs("family of new tags")):
        message = strict
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("POST", "/tags", body=body)


@pytest.mark.covers("update_tag")
def test_a_change_with_an_unknown_key_is_refused(service: Target, tag: Tag) -> None:
    is_strict = service.differs("families of endpoints") or service.differs("family of tags")
    told = "must NOT have additional properties" if is_strict else "Unrecognized key(s) in object: 'foo'"
    with refused(ServiceInvalidRequestError, f"request/body {told}", 400):
        service.client.request("PUT", "/tags/{}", tag.id, body={"name": unique(), "foo": 1})


@pytest.mark.covers("create_tag", "update_tag")
def test_a_body_must_be_json(service: Target, tag: Tag) -> None:
    for method, path in (("POST", "/tags"), ("PUT", f"/tags/{tag.id}")):
        missing = service.raw(method, path)
        text = service.raw(method, path, data="name=x", headers={"Content-Type": "text/plain"})
        broken = service.raw(method, path, data="{", headers={"Content-Type": "application/json"})

        assert (missing.status_code, missing.json()) == (415, {"message": "unsupported media type undefined"})
        assert (text.status_code, text.json()) == (415, {"message": "unsupported media type text/plain"})
        assert (broken.status_code, broken.headers["Content-Type"]) == (500, "text/html; charset=utf-8")
