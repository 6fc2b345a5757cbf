"""Credentials: ``/credentials``."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation, page
from airflow_provider_service.simulator._validation import PAGING, Body, Boolean, Object, Text

_CREATE = Body(
    required={"name": Text(), "type": Text(), "data": Object()},
    optional={"projectId": Text(), "isResolvable": Boolean()},
    read_only=("id", "createdAt", "updatedAt"),
)
_UPDATE = Body(
    optional={
        "name": Text(),
        "type": Text(),
        "data": Object(),
        "isPartialData": Boolean(),
        "isGlobal": Boolean(),
        "isResolvable": Boolean(),
    }
)
_TRANSFER = Body(required={"destinationProjectId": Text()})


@operation("list_credentials", "GET", "/credentials", scope="credential:list", family="lenient", query=PAGING)
def list_credentials(call: Call) -> Any:
    store = call.state.credentials

    def shape(credential: dict[str, Any]) -> dict[str, Any]:
        shown = {name: credential[name] for name in ("id", "name", "type", "createdAt", "updatedAt")}
        return {**shown, "shared": store.shared(credential["id"])}

    return page(call, store.all(), shape=shape)


@operation("create_credential", "POST", "/credentials", scope="credential:create", family="lenient", body=_CREATE)
def create_credential(call: Call) -> Any:
    given = call.body
    return call.state.credentials.create(
        given["name"],
        given["type"],
        given["data"],
        project_id=given.get("projectId"),
        resolvable=given.get("isResolvable", False),
    )


@operation("get_credential", "GET", "/credentials/{credentialId}", scope="credential:read", family="lenient")
def get_credential(call: Call) -> Any:
    return call.state.credentials.get(call.path["credentialId"])


@operation(
    "update_credential",
    "PATCH",
    "/credentials/{credentialId}",
    scope="credential:update",
    family="lenient",
    body=_UPDATE,
)
def update_credential(call: Call) -> Any:
    return call.state.credentials.update(call.path["credentialId"], call.body)


@operation("delete_credential", "DELETE", "/credentials/{credentialId}", scope="credential:delete", family="lenient")
def delete_credential(call: Call) -> Any:
    return {**call.state.credentials.delete(call.path["credentialId"]), "usageScope": "project"}


@operation("get_credential_schema", "GET", "/credentials/schema/{credentialTypeName}", scope=None, family="lenient")
def get_credential_schema(call: Call) -> Any:
    return call.state.credentials.schema(call.path["credentialTypeName"])


@operation("test_credential", "POST", "/credentials/{credentialId}/test", scope="credential:read", family="lenient")
def test_credential(call: Call) -> Any:
    status, message = call.state.credentials.test(call.path["credentialId"])
    return {"status": status, "message": message}


@operation(
    "transfer_credential",
    "PUT",
    "/credentials/{credentialId}/transfer",
    scope="credential:move",
    family="lenient",
    status=204,
    body=_TRANSFER,
)
def transfer_credential(call: Call) -> None:
    call.state.credentials.transfer(call.path["credentialId"], call.body["destinationProjectId"])
