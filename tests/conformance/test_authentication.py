"""Keys and scopes: what is refused without them, for every operation."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import (
    ServiceApiError,
    ServiceInvalidRequestError,
    ServiceMissingScopeError,
    ServiceNotLicensedError,
    ServiceNotOfferedError,
    ServiceUnauthorizedError,
)
from tests.client.contract import CONTRACT

from .refusals import call, check_refusal
from .target import Target

# Where a server without the license says so even to a key that lacks the scope.
LICENSE_FIRST = {"change_user_role", "create_folder", "delete_folder", "update_folder"}
# What else can be wrong with the call of an operation that is allowed.
CHECKED_FIRST = (
    ServiceMissingScopeError,
    ServiceInvalidRequestError,
    ServiceNotLicensedError,
    ServiceNotOfferedError,
)
LENIENT, STRICT = "/tags", "/users"


def scopes_of(operation: str) -> set[str]:
    return set(str(CONTRACT[operation]["scope"]).split(",")) - {"none"}


@pytest.mark.parametrize("operation", sorted(CONTRACT))
def test_a_key_without_the_scope_is_refused(shared_target: Target, operation: str) -> None:
    service, needed = shared_target, scopes_of(operation)
    if not service.offers(operation):
        check_refusal(service, operation, ServiceNotOfferedError)
        return
    for missing in needed:
        key = service.key_without(missing)
        if service.differs("key scopes"):
            assert raised(service, operation, key) is not ServiceMissingScopeError
            continue
        if service.differs("order of checks"):
            assert raised(service, operation, key) in CHECKED_FIRST
            continue
        license_first = operation in LICENSE_FIRST or (
            operation in ("get_folder", "list_folders") and service.differs("family of folders")
        )
        if service.is_gated(operation) and license_first:
            check_refusal(service, operation, ServiceNotLicensedError, key)
            continue
        error = check_refusal(service, operation, ServiceMissingScopeError, key)
        assert (error.status, error.server_message) == (403, "Forbidden")
        assert any(scope in str(error) for scope in needed)
    if not needed:
        assert raised(service, operation, service.create_key({"tag:list"})) is not ServiceMissingScopeError


def raised(service: Target, operation: str, key: str) -> type[ServiceApiError] | None:
    try:
        call(service.client_for(key), operation)
    except ServiceApiError as error:
        return type(error)
    return None


@pytest.mark.parametrize("path", [LENIENT, STRICT])
def test_without_a_key(service: Target, path: str) -> None:
    answer = service.raw("GET", path, key=None)
    assert answer.status_code == 401
    bare = path == LENIENT and not service.differs("families of endpoints")
    assert answer.json() == {"message": "Unauthorized" if bare else "'X-N8N-API-KEY' header required"}


@pytest.mark.parametrize("path", [LENIENT, STRICT])
def test_a_wrong_key(service: Target, path: str) -> None:
    answer = service.raw("GET", path, key="wrong")
    assert answer.status_code == 401
    bare = path == LENIENT and not service.differs("families of endpoints")
    assert answer.json() == {"message": "Unauthorized" if bare else "unauthorized"}


@pytest.mark.parametrize("path", [LENIENT, STRICT])
def test_the_client_says_so(service: Target, path: str) -> None:
    with pytest.raises(ServiceUnauthorizedError):
        service.client_for("wrong").request("GET", path)


def test_a_bearer_token_is_not_a_key(service: Target) -> None:
    headers = {"Authorization": f"Bearer {service.api_key}"}
    assert service.raw("GET", LENIENT, key=None, headers=headers).status_code == 401


def test_the_case_of_the_header_name_does_not_matter(service: Target) -> None:
    headers = {service.key_header.lower(): service.api_key}
    assert service.raw("GET", LENIENT, key=None, headers=headers).status_code == 200


def test_a_key_may_do_what_its_scopes_allow(service: Target) -> None:
    client = service.client_for(service.create_key({"tag:list"}))
    list(client.tags.list())
    if service.differs("key scopes"):
        return
    with pytest.raises(ServiceMissingScopeError):
        list(client.workflows.list())


@pytest.mark.covers("discover")
def test_discover_lists_the_scopes_of_the_key(service: Target) -> None:
    key = service.create_key({"tag:list", "workflow:read"})
    assert set(service.client_for(key).discovery.discover().scopes) == {"tag:list", "workflow:read"}


def test_routes_come_before_keys(service: Target) -> None:
    answer = service.raw("GET", "/nothing", key=None)
    assert (answer.status_code, answer.json()) == (404, {"message": "not found"})
    answer = service.raw("DELETE", "/tags", key=None)
    assert (answer.status_code, answer.json()) == (405, {"message": "DELETE method not allowed"})
