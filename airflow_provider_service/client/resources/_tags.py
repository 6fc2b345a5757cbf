"""The global tag registry."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_service.client._models import ServiceModel, Timestamp
from airflow_provider_service.client.resources._base import Resource

#: How many characters the name of a tag may have.
MAX_TAG_CHARS = 24


class Tag(ServiceModel):
    """A tag; ``created_at`` is absent in the answer to an update."""

    id: str
    name: str
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class Tags(Resource):
    """Tags that workflows can carry."""

    def list(self, *, limit: int | None = None) -> Iterator[Tag]:
        """Iterate over all tags: ``GET /tags``.

        :param limit: maximum number of tags; None for all.
        """
        return self._pages(Tag, "/tags", scope="tag:list", limit=limit)

    def create(self, name: str) -> Tag:
        """Create a tag: ``POST /tags``. Not safe to repeat: a second call is a conflict.

        :param name: 1 to 24 characters, unique.
        :raises ServiceConflictError: the name exists, or is longer than 24 characters.
        """
        return self._call(Tag, "POST", "/tags", scope="tag:create", body={"name": name})

    def get(self, tag_id: str) -> Tag:
        """Read a tag: ``GET /tags/{tagId}``.

        :raises ServiceNotFoundError: no such tag.
        """
        return self._call(Tag, "GET", "/tags/{}", tag_id, scope="tag:read")

    def update(self, tag_id: str, name: str) -> Tag:
        """Rename a tag: ``PUT /tags/{id}``. Safe to repeat.

        :raises ServiceConflictError: the name exists.
        :raises ServiceNotFoundError: no such tag.
        """
        return self._call(Tag, "PUT", "/tags/{}", tag_id, scope="tag:update", body={"name": name})

    def delete(self, tag_id: str) -> Tag:
        """Delete a tag and return it: ``DELETE /tags/{id}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceNotFoundError: no such tag.
        """
        return self._call(Tag, "DELETE", "/tags/{}", tag_id, scope="tag:delete")
