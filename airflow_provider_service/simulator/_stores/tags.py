"""Tags: the global registry that workflows refer to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._validation import ApiError

_MAX_NAME = 24


class TagStore:
    """Tags in creation order; names are unique and case-sensitive."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tags: dict[str, dict[str, Any]] = {}

    def all(self) -> Sequence[dict[str, Any]]:
        return list(self._tags.values())

    def find(self, tag_id: str) -> dict[str, Any] | None:
        return self._tags.get(tag_id)

    def named(self, name: str) -> dict[str, Any] | None:
        return next((tag for tag in self._tags.values() if tag["name"] == name), None)

    def get(self, tag_id: str) -> dict[str, Any]:
        """One tag.

        :raises ApiError: 404
        """
        tag = self._tags.get(tag_id)
        if tag is None:
            raise ApiError(404, "Not Found")
        return tag

    def create(self, name: str, *, tag_id: str | None = None) -> dict[str, Any]:
        """Create a tag.

        :raises ApiError: 409 for a taken name, and for one that is empty or too long, as in the service
        """
        name = self._check_name(name)
        now = self._host.stamp()
        tag = {"id": tag_id or self._host.new_id(), "name": name, "createdAt": now, "updatedAt": now}
        self._tags[tag["id"]] = tag
        return tag

    def rename(self, tag_id: str, name: str) -> bool:
        """Rename a tag; returns whether anything changed.

        :raises ApiError: 404, 409
        """
        tag = self.get(tag_id)
        name = self._check_name(name, besides=tag_id)
        if name == tag["name"]:
            return False
        tag.update(name=name, updatedAt=self._host.stamp())
        return True

    def delete(self, tag_id: str) -> dict[str, Any]:
        """Delete a tag and return it.

        :raises ApiError: 404
        """
        return self._tags.pop(self.get(tag_id)["id"])

    def _check_name(self, name: str, *, besides: str | None = None) -> str:
        name = name.strip()
        holder = self.named(name)
        if not 0 < len(name) <= _MAX_NAME or (holder is not None and holder["id"] != besides):
            raise ApiError(409, "Tag already exists")
        return name
