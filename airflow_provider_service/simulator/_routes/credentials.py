"""Credentials: ``/credentials``."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation, page
from airflow_provider_service.simulator._validation import PAGING, Body, Boolean, Object, Text

_CREDENTIAL = "/credentials/{credentialId}"
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
_operation = partial(operation, family="lenient")


@_operation("GET", "/credentials", scope="credential:list", query=PAGING)
def list_credentials(call: Call) -> Any:
    store = call.state.credentials

    def shape(credential: dict[str, Any]) -> dict[str, Any]:
        shown = {name: credential[name] for name in ("id", "name", "type", "createdAt", "updatedAt")}
        return {**shown, "shared": store.shared(credential["id"])}

    return page(call, store.all(), shape=shape)


@_operation("POST", "/credentials", scope="credential:create", body=_CREATE)
def create_credential(call: Call) -> Any:
    body = call.body
    return call.state.credentials.create(
        body["name"],
        body["type"],
        body["data"],
        project_id=body.get("projectId"),
        resolvable=body.get("isResolvable", False),
    )


@_operation("GET", _CREDENTIAL, scope="credential:read")
def get_credential(call: Call) -> Any:
    return call.state.credentials.get(call.path["credentialId"])


@_operation("PATCH", _CREDENTIAL, scope="credential:update", body=_UPDATE)
def update_credential(call: Call) -> Any:
    return call.state.credentials.update(call.path["credentialId"], call.body)


@_operation("DELETE", _CREDENTIAL, scope="credential:delete")
def delete_credential(call: Call) -> Any:
    return {**call.state.credentials.delete(call.path["credentialId"]), "usageScope": "project"}


@_operation("GET", "/credentials/schema/{credentialTypeName}", scope=None)
def get_credential_schema(call: Call) -> Any:
    return call.state.credentials.schema(call.path["credentialTypeName"])


@_operation("POST", f"{_CREDENTIAL}/test", scope="credential:read")
def test_credential(call: Call) -> Any:
    status, message = call.state.credentials.test(call.path["credentialId"])
    return {"status": status, "message": message}


@_operation("PUT", f"{_CREDENTIAL}/transfer", scope="credential:move", status=204, body=_TRANSFER)
def transfer_credential(call: Call) -> None:
    call.state.credentials.transfer(call.path["credentialId"], call.body["destinationProjectId"])
