"""Credentials; the service never returns their secret data."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_service.client.models._base import ServiceModel, Timestamp


class _CredentialFields(ServiceModel):
    name: str
    type: str
    is_managed: bool | None = None
    is_global: bool | None = None
    is_resolvable: bool | None = None
    resolvable_allow_fallback: bool | None = None
    resolver_id: str | None = None
    shared: list[dict[str, Any]] | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class Credential(_CredentialFields):
    """A credential; the items of a list have ``shared`` but lack the flags."""

    id: str


class DeletedCredential(_CredentialFields):
    """The answer to a delete; older servers leave out the id."""

    id: str | None = None
    usage_scope: str | None = None


class CredentialTest(ServiceModel):
    """The outcome of a test; a failed one is an answer, not an error."""

    status: Literal["OK", "Error"] | str
    message: str | None = None
