"""Users: the owner and the invited users."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._validation import ApiError

OWNER_ROLE = "global:owner"
MEMBER_ROLE = "global:member"
ASSIGNABLE_ROLES = ("global:admin", MEMBER_ROLE, "global:chatUser")
OWNER_EMAIL = "owner@example.com"


class UserStore:
    """Users by id. Their personal projects are created by the state."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._users: dict[str, dict[str, Any]] = {}
        self._tokens: dict[str, str] = {}

    @property
    def owner_name(self) -> str:
        """The owner's full name, in the format of the authors of versions."""
        owner = self.get(self._host.owner_id)
        return f"{owner['firstName']} {owner['lastName']}"

    def add_owner(self) -> dict[str, Any]:
        """Create the owner, with the id that keys act as."""
        return self._add(self._host.owner_id, OWNER_EMAIL, OWNER_ROLE, ("Olivia", "Owner"))

    def add(self, email: str, role: str, names: tuple[str, str] | None) -> dict[str, Any]:
        """Create a user.

        :param names: first and last name; None: the user was invited and has not signed up
        """
        return self._add(str(uuid.uuid4()), email, role, names)

    def _add(self, user_id: str, email: str, role: str, names: tuple[str, str] | None) -> dict[str, Any]:
        now = self._host.stamp()
        first_name, last_name = names or (None, None)
        user = {
            "id": user_id,
            "email": email,
            "firstName": first_name,
            "lastName": last_name,
            "createdAt": now,
            "updatedAt": now,
            "isPending": names is None,
            "mfaEnabled": False,
            "role": role,
        }
        self._users[user_id] = user
        return user

    def all(self) -> Sequence[dict[str, Any]]:
        """Every user by id: the service's order does not depend on age or name."""
        return sorted(self._users.values(), key=lambda user: str(user["id"]))

    def find(self, id_or_email: str) -> dict[str, Any] | None:
        if "@" in id_or_email:
            wanted = id_or_email.lower()
            return next((user for user in self._users.values() if user["email"].lower() == wanted), None)
        return self._users.get(id_or_email.lower())

    def get(self, id_or_email: str) -> dict[str, Any]:
        """One user, by id or e-mail address (whatever its case).

        :raises ApiError: 404
        """
        user = self.find(id_or_email)
        if user is None:
            raise ApiError(404, f"Could not find user with id: {id_or_email}")
        return user

    def check_invitations(self, invitations: Sequence[tuple[str, str]]) -> None:
        """Refuse (e-mail, role) pairs that cannot all be invited.

        :raises ApiError: 400 or 403 a role that cannot be given, 500 addresses that differ only in case
        """
        for _, role in invitations:
            self._check_invited_role(role)
        seen = {user["email"].lower(): user["email"] for user in self._users.values()}
        for email, _ in invitations:
            if seen.setdefault(email.lower(), email) != email:
                raise ApiError(500, "An error occurred during user creation")

    def _check_invited_role(self, role: str) -> None:
        if role == OWNER_ROLE:
            raise ApiError(400, "This global role value is not assignable")
        if role not in ASSIGNABLE_ROLES:
            raise ApiError(400, f"Role {role} does not exist")
        if role == "global:admin" and not self._host.licensed:
            text = "Cannot invite admin user without advanced permissions. "
            raise ApiError(403, text + "Please upgrade to a license that includes this feature.")

    def invitation(self, user: dict[str, Any]) -> dict[str, Any]:
        """The invitation of a user who has not signed up; its URL is always the same."""
        token = self._tokens.setdefault(user["id"], secrets.token_urlsafe(32))
        shown = {name: user[name] for name in ("id", "email", "role")}
        accept_url = f"{self._host.base_url}/signup?token={token}"
        return {"user": {**shown, "emailSent": False, "inviteAcceptUrl": accept_url}, "error": ""}

    def change_role(self, user_id: str, role: str) -> None:
        """Give a user another global role.

        :raises ApiError: 404, 400 unknown role, 403 for the owner's own role
        """
        user = self.get(user_id)
        if role not in ASSIGNABLE_ROLES:
            raise ApiError(400, f"Role {role} does not exist")
        if user["role"] == OWNER_ROLE:
            raise ApiError(403, "Owner cannot change role on global owner")
        user.update(role=role, updatedAt=self._host.stamp())

    def delete(self, user_id: str, *, by: str) -> None:
        """Delete a user by id; an e-mail address is not accepted.

        :raises ApiError: 400 for oneself, 404
        """
        if user_id == by:
            raise ApiError(400, "Cannot delete your own user")
        if user_id not in self._users:
            raise ApiError(404, "Request to delete a user failed because the user to delete was not found in DB")
        del self._users[user_id]
