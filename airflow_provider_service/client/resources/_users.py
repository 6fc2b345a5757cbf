"""Users of the instance and their invitations."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic import Field

from airflow_provider_service.client._http.paging import follow_cursor
from airflow_provider_service.client._models import ServiceModel, Timestamp
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.errors import ServiceInputError, ServiceNotOfferedError
from airflow_provider_service.client.resources._base import Resource, require
from airflow_provider_service.client.resources._credentials import Credentials
from airflow_provider_service.client.resources._data_tables import DataTables
from airflow_provider_service.client.resources._workflows import Workflows

_MAX_NAMED = 10


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

    def delete(self, user_id: str, *, delete_workflows: bool = False) -> None:
        """Delete a user **and everything in the user's personal project**: ``DELETE /users/{id}``.

        The service deletes the user's workflows, credentials and data tables, too, and has no parameter that keeps
        them. So this method first lists them, and refuses to delete a user who owns some that the key can see. Before,
        move workflows and credentials to another project, with ``workflows.transfer`` and ``credentials.transfer``.
        The service cannot move data tables: copy their rows and delete them. A table in a project without other
        members counts as the user's.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :param user_id: id; an e-mail address is not accepted here.
        :param delete_workflows: delete the user's workflows, credentials and data tables as well, without looking for
            them first; False by default.
        :raises ServiceInputError: the user owns workflows, credentials or data tables; nothing was deleted.
        :raises ServiceForbiddenError: the key may not delete users or, without ``delete_workflows``, may not list
            users, workflows, credentials and data tables; nothing was deleted.
        :raises ServiceNotOfferedError: without ``delete_workflows``, on n8n before 2.8, which lists no credentials.
        :raises ServiceInvalidRequestError: the user is the one that the key belongs to.
        :raises ServiceNotFoundError: no such user.
        """
        require("@" not in str(user_id), "a user is deleted by id, not by e-mail address")
        if not delete_workflows:
            self._require_no_content(self.get(user_id))
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

    def _require_no_content(self, user: User) -> None:
        # Only some plans list projects, but everybody's personal one is named "First Last <address>".
        ending = f"<{user.email.lower()}>"
        owned = [
            f"the credential {credential.name!r}"
            for credential in Credentials(self._transport).list()
            if any(
                _owns(place) and str(place.get("name")).lower().endswith(ending) for place in credential.shared or ()
            )
        ]
        workflows, projects = Workflows(self._transport), dict[str, bool]()
        for workflow in workflows.list(exclude_pinned_data=True):
            project_id = next((str(place.get("projectId")) for place in workflow.shared or () if _owns(place)), "")
            if not project_id or project_id not in projects:  # a list shows only the ids of projects
                shared = workflows.get(workflow.id, exclude_pinned_data=True).shared or ()
                names = [str((place.get("project") or {}).get("name")).lower() for place in shared if _owns(place)]
                projects[project_id] = any(name.endswith(ending) for name in names)
            if projects[project_id]:
                owned.append(f"the workflow {workflow.name!r}")
        with suppress(ServiceNotOfferedError):
            tables: dict[str | None, list[str]] = {}
            for table in DataTables(self._transport).list():
                tables.setdefault(table.project_id, []).append(f"the data table {table.name!r}")
            for place_id, names in tables.items():
                if [member.id for member in self.list(project_id=place_id)] == [user.id]:
                    owned += names
        if owned:
            more = f" and {len(owned) - _MAX_NAMED} more" if len(owned) > _MAX_NAMED else ""
            raise ServiceInputError(
                f"the user {user.email} owns {one_line(', '.join(owned[:_MAX_NAMED]))}{more}, which the service would "
                "delete together with the user; nothing was deleted. Move them to another project first, with "
                "workflows.transfer and credentials.transfer, copy data tables, or give delete_workflows=True"
            )


def _owns(place: Mapping[str, Any]) -> bool:
    return str(place.get("role")).endswith(":owner")
