"""Operator for users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import as_list, as_rendered, repeated, require
from airflow_provider_service.links.service import USERS_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.operators.results import InviteUsersResult

__all__ = ["ServiceInviteUsersOperator"]


class ServiceInviteUsersOperator(ServiceBaseOperator):
    """Invite users. Safe to repeat: active users are not invited again, but pending ones may get another e-mail.

    The URLs for accepting invitations are secret, so they are not returned. To remove a user, see the page *Users and
    projects*: the service deletes the workflows and credentials of a deleted user.

    :param users: list of e-mail addresses, or of ``{"email", "role"}``.
    :param role: role of users who are given only by an address; ``"global:member"`` by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`InviteUsersResult`; ``invited`` lists ``{"user_id", "email", "email_sent"}``, and
        ``already_active`` lists e-mail addresses.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "users", "role")

    def __init__(
        self,
        *,
        users: Templated[Sequence[str | Mapping[str, str]]],
        role: Templated[str] = "global:member",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.users = as_rendered(users)
        self.role = as_rendered(role)
        self.check_arguments()

    def perform(self, context: Context) -> InviteUsersResult:
        requested = [self._user(user) for user in as_list("users", self.users)]
        addresses = [user["email"].lower() for user in requested]
        twice = sorted(repeated(addresses))
        require(not twice, f"users lists {', '.join(twice)} more than once")
        url = self.link_page(context, USERS_PAGE)
        invitations = self.hook.users.create(requested) if requested else []
        failed = [f"{invitation.user.email}: {invitation.error}" for invitation in invitations if invitation.error]
        if failed:
            raise AirflowFailException(f"{len(failed)} of {len(invitations)} invitations failed: {'; '.join(failed)}")
        answered = {invitation.user.email.lower() for invitation in invitations}
        active = [user["email"] for user in requested if user["email"].lower() not in answered]
        self.log.info("Users invited: %d, already active: %d; see %s", len(invitations), len(active), url)
        invited = [invitation.user for invitation in invitations]
        if unsent := [user.email for user in invited if user.email_sent is False]:
            self.log.warning(
                "The service has sent no e-mail to %s. Send them their invitation links, which %s shows",
                ", ".join(unsent),
                url,
            )
        return {
            "invited": [{"user_id": user.id, "email": user.email, "email_sent": user.email_sent} for user in invited],
            "already_active": active,
            "url": url,
        }

    def _user(self, user: Any) -> dict[str, str]:
        user = {"email": user} if isinstance(user, str) else user
        require(
            isinstance(user, Mapping) and isinstance(user.get("email"), str) and user["email"].strip(),
            "users must list e-mail addresses, or mappings with 'email' and 'role'",
        )
        return {"role": self.role, **user}
