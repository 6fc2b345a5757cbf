"""Users and invitations."""

from __future__ import annotations

from pydantic import Field

from airflow_provider_service.client.models._base import ServiceModel, Timestamp


class User(ServiceModel):
    """A user; ``role`` is present if it was requested."""

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
    """The invited user; ``invite_accept_url`` is a secret."""

    id: str | None = None
    email: str
    email_sent: bool | None = None
    role: str | None = None
    invite_accept_url: str | None = Field(None, repr=False)

    secrets = frozenset({"invite_accept_url"})


class Invitation(ServiceModel):
    """The result of one invitation; ``error`` is empty if it succeeded."""

    user: InvitedUser
    error: str | None = None

    secrets = {"user": InvitedUser.secrets}
