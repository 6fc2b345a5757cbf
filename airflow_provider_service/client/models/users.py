"""Users and invitations."""

from __future__ import annotations

from pydantic import Field

from airflow_provider_service.client.models._base import ServiceModel, Timestamp


class User(ServiceModel):
    """A user; ``role`` is there when it was asked for."""

    id: str
    email: str
    first_name: str | None = None
    last_name: str | None = None
    role: str | None = None
    is_pending: bool | None = None
    mfa_enabled: bool | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class InvitedUser(ServiceModel):
    """The user that an invitation is for; ``invite_accept_url`` is a secret."""

    id: str | None = None
    email: str
    email_sent: bool | None = None
    role: str | None = None
    invite_accept_url: str | None = Field(None, repr=False)

    secrets = frozenset({"invite_accept_url"})


class Invitation(ServiceModel):
    """The outcome of one invitation; ``error`` is empty when it went well."""

    user: InvitedUser
    error: str | None = None

    secrets = {"user": InvitedUser.secrets}
