"""Users of the instance."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from airflow_provider_service.client._http.paging import follow_cursor
from airflow_provider_service.client.models._users import Invitation, User
from airflow_provider_service.client.resources._base import Resource, require


class Users(Resource):
    """Users of the instance."""

    def list(
        self,
        *,
        include_role: bool | None = None,
        project_id: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> Iterator[User]:
        """Iterate over users: ``GET /users``.

        :param include_role: include their global roles.
        :param project_id: only members of the project.
        :param offset: number of users to skip.
        :param limit: maximum number of users; None for all.
        :raises ServiceNotFoundError: no such project.
        """
        query = {"includeRole": include_role, "projectId": project_id}
        follow = partial(follow_cursor, offset=offset)
        return self._pages(User, "/users", scope="user:list", query=query, limit=limit, follow=follow)

    def create(self, users: Sequence[Mapping[str, str]]) -> builtins.list[Invitation]:
        """Invite users: ``POST /users``. Not safe to repeat: it can send the invitations again.

        :param users: ``{"email": ..., "role": ...}`` each; the role defaults to ``global:member``.
        :returns: one invitation per user; users who are already active are left out.
        :raises ServiceInvalidRequestError: a role is unknown, or an address is malformed.
        :raises ServiceNotLicensedError: the server's plan does not include the role.
        """
        require(not isinstance(users, (str, Mapping)) and len(users) > 0, "users must be a list of at least one user")
        return self._call(builtins.list[Invitation], "POST", "/users", scope="user:create", body=users)

    def get(self, user_id: str, *, include_role: bool | None = None) -> User:
        """Read a user: ``GET /users/{id}``.

        :param user_id: id or e-mail address.
        :param include_role: include the global role.
        :raises ServiceNotFoundError: no such user.
        """
        query = {"includeRole": include_role}
        return self._call(User, "GET", "/users/{}", user_id, scope="user:read", query=query)

    def delete(self, user_id: str) -> None:
        """Delete a user: ``DELETE /users/{id}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :param user_id: id; an e-mail address is not accepted here.
        :raises ServiceInvalidRequestError: the user is the one that the key belongs to.
        :raises ServiceNotFoundError: no such user.
        """
        require("@" not in str(user_id), "a user is deleted by id, not by e-mail address")
        self._run("DELETE", "/users/{}", user_id, scope="user:delete")

    def change_role(self, user_id: str, new_role_name: str) -> None:
        """Change a user's global role: ``PATCH /users/{id}/role``. Safe to repeat.

        :param user_id: id or e-mail address.
        :param new_role_name: e.g. ``"global:admin"``.
        :raises ServiceNotLicensedError: the plan does not include roles.
        :raises ServiceNotFoundError: no such user.
        """
        body = {"newRoleName": new_role_name}
        self._run("PATCH", "/users/{}/role", user_id, scope="user:changeRole", body=body, repeatable=True)
