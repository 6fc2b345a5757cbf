"""Tags: ``/tags``."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._paging import page
from airflow_provider_service.simulator._validation import PAGING, Body, Text

_BODY = Body(required={"name": Text()}, closed=True, read_only=("id", "createdAt", "updatedAt"))


@operation("list_tags", "GET", "/tags", scope="tag:list", family="lenient", query=PAGING)
def list_tags(call: Call) -> Any:
    return page(call, call.state.tags.all())


@operation("create_tag", "POST", "/tags", scope="tag:create", family="lenient", status=201, body=_BODY)
def create_tag(call: Call) -> Any:
    return call.state.tags.create(call.body["name"])


@operation("get_tag", "GET", "/tags/{tagId}", scope="tag:read", family="lenient")
def get_tag(call: Call) -> Any:
    return call.state.tags.get(call.path["tagId"])


@operation("update_tag", "PUT", "/tags/{tagId}", scope="tag:update", family="lenient", body=_BODY)
def update_tag(call: Call) -> Any:
    changed = call.state.tags.rename(call.path["tagId"], call.body["name"])
    tag = call.state.tags.get(call.path["tagId"])
    return {name: tag[name] for name in ("id", "name", *(("updatedAt",) if changed else ()))}


@operation("delete_tag", "DELETE", "/tags/{tagId}", scope="tag:delete", family="lenient")
def delete_tag(call: Call) -> Any:
    return call.state.tags.delete(call.path["tagId"])
