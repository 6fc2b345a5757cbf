"""Users: the owner, and whoever was invited."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service.simulator.validation import ApiError

if TYPE_CHECKING:
    from airflow_provider_service.simulator.state import State

OWNER_ROLE = "global:owner"
MEMBER_ROLE = "global:member"
ASSIGNABLE_ROLES = ("global:admin", MEMBER_ROLE, "global:chatUser")
OWNER_EMAIL = "owner@example.com"


class UserStore:
    """Users by id; every one has a personal project."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._users: dict[str, dict[str, Any]] = {}
        self._tokens: dict[str, str] = {}

    def add_owner(self) -> None:
        """Make the owner, under the id that the state's keys act as."""
        self._add(self._state.owner_id, OWNER_EMAIL, OWNER_ROLE, names=("Olivia", "Owner"))

    def add(self, email: str, role: str = MEMBER_ROLE, *, first_name: str = "", last_name: str = "") -> dict[str, Any]:
        """Add an active user, as if invited and signed up."""
        return self._add(str(uuid.uuid4()), email, role, names=(first_name, last_name))

    def _add(self, user_id: str, email: str, role: str, names: tuple[str, str] | None) -> dict[str, Any]:
        now = self._state.stamp()
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
        self._state.projects.add_personal(user)
        return user

    def all(self) -> Sequence[dict[str, Any]]:
        """Every user by id: the order of the service says nothing about age or name."""
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

    def invite(self, invitations: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        """Invite (e-mail, role) pairs, all or none; answers an invitation for each that is not an active user yet.

        :raises ApiError: 400 or 403 a role that cannot be given, 500 addresses that differ only in case
        """
        for _, role in invitations:
            self._check_invited_role(role)
        seen = {user["email"].lower(): user["email"] for user in self._users.values()}
        for email, _ in invitations:
            if seen.setdefault(email.lower(), email) != email:
                raise ApiError(500, "An error occurred during user creation")
        users = [self.find(email) or self._add(str(uuid.uuid4()), email, role, None) for email, role in invitations]
        return [self._invitation(user) for user in users if user["isPending"]]

    def _check_invited_role(self, role: str) -> None:
        if role == OWNER_ROLE:
            raise ApiError(400, "This global role value is not assignable")
        if role not in ASSIGNABLE_ROLES:
            raise ApiError(400, f"Role {role} does not exist")
        if role == "global:admin" and not self._state.licensed:
            text = "Cannot invite admin user without advanced permissions. "
            raise ApiError(403, text + "Please upgrade to a license that includes this feature.")

    def _invitation(self, user: dict[str, Any]) -> dict[str, Any]:
        token = self._tokens.setdefault(user["id"], secrets.token_urlsafe(32))
        shown = {name: user[name] for name in ("id", "email", "role")}
        accept_url = f"{self._state.base_url}/signup?token={token}"
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
        user.update(role=role, updatedAt=self._state.stamp())

    def delete(self, user_id: str, *, by: str) -> None:
        """Delete a user with the personal project and all in it; only an id finds it, an e-mail address does not.

        :raises ApiError: 400 for oneself, 404
        """
        if user_id == by:
            raise ApiError(400, "Cannot delete your own user")
        if user_id not in self._users:
            raise ApiError(404, "Request to delete a user failed because the user to delete was not found in DB")
        del self._users[user_id]
        self._state.projects.forget_user(user_id)
