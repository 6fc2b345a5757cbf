"""Tags of the global registry."""

from __future__ import annotations

from airflow_provider_service.client.models._base import ServiceModel, Timestamp

#: How many characters the name of a tag may have.
MAX_TAG_CHARS = 24


class Tag(ServiceModel):
    """A tag; ``created_at`` is absent in the answer to an update."""

    id: str
    name: str
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
