"""Credentials: written, never read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_service.client.errors import (
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServiceNotLicensedError,
)
from airflow_provider_service.client.models import Credential

from .expecting import NO_ID, refused, unique
from .target import Target

HEADER = {"name": "X-Token", "value": "secret-of-a-test"}
UNTESTABLE = "No testing function found for this credential."

Make = Callable[..., Credential]


@pytest.fixture
def make(service: Target) -> Iterator[Make]:
    """``make(type="httpHeaderAuth", data=HEADER)`` creates a credential that is deleted after the test."""
    made: list[str] = []

    def create(type: str = "httpHeaderAuth", data: dict[str, Any] | None = None) -> Credential:
        credential = service.client.credentials.create(unique(), type, HEADER if data is None else data)
        made.append(credential.id)
        return credential

    yield create
    for credential_id in made:
        service.raw("DELETE", f"/credentials/{credential_id}")


@pytest.mark.covers("create_credential")
def test_a_credential_is_created_without_showing_its_data(service: Target, make: Make) -> None:
    wire = make().to_wire()

    assert wire["type"] == "httpHeaderAuth"
    assert (wire["isManaged"], wire["isGlobal"]) == (False, False)
    assert "data" not in wire
    assert HEADER["value"] not in str(wire)


@pytest.mark.covers("get_credential", needs=("create_credential",))
def test_a_credential_is_read_without_its_data(service: Target, make: Make) -> None:
    credential = make()

    answer = service.raw("GET", f"/credentials/{credential.id}")

    assert service.client.credentials.get(credential.id) == credential
    assert HEADER["value"] not in answer.text


@pytest.mark.covers("list_credentials", needs=("create_credential",))
def test_the_newest_credential_is_listed_first_with_its_project(service: Target, make: Make) -> None:
    credential = make()

    (first,) = service.client.credentials.list(limit=1)

    assert (first.id, first.name) == (credential.id, credential.name)
    (shared,) = first.to_wire()["shared"]
    assert shared["role"] == "credential:owner"
    assert set(shared) == {"id", "name", "role", "createdAt", "updatedAt"}


@pytest.mark.covers("create_credential")
def test_names_of_credentials_are_not_unique_and_may_be_empty(service: Target, make: Make) -> None:
    name = make().name
    for again in (name, ""):
        credential = service.client.credentials.create(again, "httpHeaderAuth", HEADER)
        service.client.credentials.delete(credential.id)
        assert credential.name == again


@pytest.mark.parametrize(
    ("type", "data", "message"),
    [
        ("noSuchType", {}, "req.body.type is not a known type"),
        ("httpHeaderAuth", {"x": 1}, 'request.body.data is not allowed to have the additional property "x"'),
        ("slackApi", {}, 'request.body.data requires property "accessToken"'),
        ("httpHeaderAuth", {"name": 5}, "request.body.data is not of a type(s) string"),
    ],
)
@pytest.mark.covers("create_credential")
def test_data_that_does_not_fit_the_type_is_refused(
    service: Target, type: str, data: dict[str, Any], message: str
) -> None:
    with pytest.raises(ServiceInvalidRequestError) as caught:
        service.client.credentials.create(unique(), type, data)
    assert str(caught.value.server_message).endswith(message)


PASSPHRASE = {"keyType": "passphrase", "secret": "a" * 32, "algorithm": "HS256"}


@pytest.mark.covers("create_credential")
def test_fields_that_belong_to_others_are_not_required(service: Target) -> None:
    # The notice of a Slack credential belongs to the signature secret, if this is empty.
    body = {"name": unique(), "type": "slackApi", "data": {"accessToken": "x"}}
    answer = service.raw("POST", "/credentials", json=body)

    if service.differs("data of credentials"):
        assert answer.status_code == 400
        assert answer.json()["message"].endswith('requires property "notice"')
    else:
        service.client.credentials.delete(answer.json()["id"])


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("slackApi", {"accessToken": "x"}),
        ("jwtAuth", PASSPHRASE),
        ("jwtAuth", {**PASSPHRASE, "privateKey": "", "publicKey": ""}),
        ("httpBasicAuth", {"user": "me", "password": "p"}),
        ("httpBasicAuth", {"user": "me", "password": "p", "allowedHttpRequestDomains": "all"}),
        ("postgres", {"host": "x", "database": "d", "user": "u", "password": "p", "ssl": "disable"}),
    ],
)
@pytest.mark.covers("create_credential")
def test_data_is_taken_in_the_form_of_the_newest_server(service: Target, make: Make, type: str, data: Any) -> None:
    assert make(type, data).type == type


@pytest.mark.covers("update_credential", needs=("create_credential",))
def test_other_data_is_taken_in_the_form_of_the_newest_server(service: Target, make: Make) -> None:
    credential = make("jwtAuth", PASSPHRASE)
    changed = service.client.credentials.update(credential.id, data={**PASSPHRASE, "privateKey": "", "publicKey": ""})
    assert changed.type == "jwtAuth"


@pytest.mark.covers("create_credential")
def test_a_credential_of_an_unknown_project_is_not_created(service: Target) -> None:
    if service.differs("unknown projects"):
        made = service.client.credentials.create(unique(), "httpHeaderAuth", HEADER, project_id=NO_ID)
        service.client.credentials.delete(made.id)
        return
    with refused(ServiceNotFoundError, "Project not found"):
        service.client.credentials.create(unique(), "httpHeaderAuth", HEADER, project_id=NO_ID)


@pytest.mark.covers("update_credential", needs=("create_credential", "get_credential"))
def test_a_credential_is_renamed_and_given_other_data(service: Target, make: Make) -> None:
    credential, name = make(), unique()

    changed = service.client.credentials.update(credential.id, name=name)
    service.client.credentials.update(credential.id, data={"name": "Y", "value": "other"})
    service.client.credentials.update(credential.id, data={"value": "third"}, is_partial_data=True)

    assert (changed.name, changed.type, changed.created_at) == (name, "httpHeaderAuth", credential.created_at)
    assert service.client.credentials.get(credential.id).name == name


@pytest.mark.covers("update_credential", needs=("create_credential",))
def test_an_update_of_nothing_is_accepted(service: Target, make: Make) -> None:
    credential = make()
    assert service.client.credentials.update(credential.id).name == credential.name


@pytest.mark.covers("update_credential", needs=("create_credential",))
def test_another_type_needs_its_data(service: Target, make: Make) -> None:
    credential = make()
    message = (
        "req.body.data is required when changing credential type. The existing data cannot be used with the new type."
    )

    with refused(ServiceInvalidRequestError, message, 400):
        service.client.credentials.update(credential.id, type="httpBasicAuth")
    changed = service.client.credentials.update(
        credential.id, type="httpBasicAuth", data={"user": "u", "password": "p"}
    )

    assert changed.type == "httpBasicAuth"


@pytest.mark.covers("update_credential", needs=("create_credential",))
def test_an_update_is_held_to_the_type_too(service: Target, make: Make) -> None:
    credential = make()
    message = 'request.body.data is not allowed to have the additional property "x"'
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.credentials.update(credential.id, data={"x": 1})


@pytest.mark.covers("update_credential", needs=("create_credential",))
def test_sharing_with_everyone_depends_on_the_plan(service: Target, make: Make) -> None:
    credential = make()
    if service.free_edition:
        with refused(ServiceNotLicensedError, "You are not licensed for sharing credentials"):
            service.client.credentials.update(credential.id, is_global=True)
    else:
        assert service.client.credentials.update(credential.id, is_global=True).to_wire()["isGlobal"] is True


@pytest.mark.covers("delete_credential", needs=("create_credential",))
def test_a_deleted_credential_is_gone(service: Target, make: Make) -> None:
    credential = make()

    deleted = service.client.credentials.delete(credential.id)

    if not service.differs("delete_credential"):
        assert (deleted.id, deleted.usage_scope) == (credential.id, "project")
    assert (deleted.name, deleted.type) == (credential.name, credential.type)
    with refused(ServiceNotFoundError, "Not Found"):
        service.client.credentials.delete(credential.id)


@pytest.mark.covers("get_credential", "update_credential")
def test_an_unknown_credential_is_not_found(service: Target) -> None:
    with refused(ServiceNotFoundError, "Credential not found"):
        service.client.credentials.get(NO_ID)
    with refused(ServiceNotFoundError, "Credential not found"):
        service.client.credentials.update(NO_ID, name="x")


@pytest.mark.covers("get_credential_schema")
def test_the_schema_of_a_type_is_a_closed_object(service: Target) -> None:
    schema = service.client.credentials.get_schema("httpHeaderAuth")

    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert {"name", "value"} <= set(schema["properties"])
    assert isinstance(schema["required"], list)


@pytest.mark.covers("get_credential_schema")
def test_an_unknown_type_has_no_schema(service: Target) -> None:
    with refused(ServiceNotFoundError, "Not Found"):
        service.client.credentials.get_schema("noSuchType")


@pytest.mark.covers("get_credential_schema")
def test_a_schema_needs_a_key_but_no_scope(service: Target) -> None:
    key = service.create_key(["tag:list"])

    assert service.client_for(key).credentials.get_schema("httpBasicAuth")["type"] == "object"
    assert service.raw("GET", "/credentials/schema/httpBasicAuth", key=None).status_code == 401


@pytest.mark.covers("test_credential", needs=("create_credential",))
def test_an_untestable_credential_says_so_in_a_success(service: Target, make: Make) -> None:
    if service.differs("test_credential"):
        with pytest.raises(ServiceInvalidRequestError, match="Unrecognized node type"):
            service.client.credentials.test(make().id)
        return
    outcome = service.client.credentials.test(make().id)
    assert outcome.to_wire() == {"status": "Error", "message": UNTESTABLE}


@pytest.mark.covers("test_credential")
def test_an_unknown_credential_cannot_be_tested(service: Target) -> None:
    with refused(ServiceNotFoundError, f'Credential with ID "{NO_ID}" was not found.'):
        service.client.credentials.test(NO_ID)


@pytest.mark.covers("transfer_credential", needs=("create_credential", "create_users"))
def test_a_credential_moves_to_another_project(service: Target, make: Make, other_project: str) -> None:
    credential = make()

    service.client.credentials.transfer(credential.id, other_project)

    already = "You can't transfer a credential into the project that's already owning it."
    with refused(ServiceInvalidRequestError, already, 400):
        service.client.credentials.transfer(credential.id, other_project)


@pytest.mark.covers("transfer_credential")
def test_neither_an_unknown_credential_nor_to_an_unknown_project(service: Target, make: Make) -> None:
    may_not_move = f'Could not find the credential with the id "{NO_ID}". Make sure you have the permission to move it.'
    may_not_create = (
        f'Could not find project with the id "{NO_ID}". Make sure you have the permission to create credentials in it.'
    )
    error = ServiceInvalidRequestError if service.differs("transfer_credential") else ServiceNotFoundError
    with refused(error, may_not_move):
        service.client.credentials.transfer(NO_ID, NO_ID)
    with refused(error, may_not_create):
        service.client.credentials.transfer(make().id, NO_ID)
