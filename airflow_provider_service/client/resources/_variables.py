"""Variables of the instance and of projects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from airflow_provider_service.client._models import Null, ServiceModel
from airflow_provider_service.client.resources._base import Resource, without_none
from airflow_provider_service.client.resources._projects import Project


class Variable(ServiceModel):
    """A variable; ``project`` is None if it belongs to the whole instance."""

    id: str
    key: str
    value: str
    type: str | None = None
    project: Project | None = None


class Variables(Resource):
    """Variables that workflows read; available on some plans of the server only (:class:`ServiceNotLicensedError`)."""

    def list(
        self, *, project_id: str | None = None, state: Literal["empty"] | None = None, limit: int | None = None
    ) -> Iterator[Variable]:
        """Iterate over variables: ``GET /variables``.

        :param project_id: only those of the project.
        :param state: ``"empty"`` for those without a value.
        :param limit: maximum number of variables; None for all.
        """
        query = {"projectId": project_id, "state": state}
        return self._pages(Variable, "/variables", scope="variable:list", query=query, limit=limit)

    def create(self, key: str, value: str, *, project_id: str | None = None) -> None:
        """Create a variable: ``POST /variables``. Not safe to repeat: a second call is refused.

        The answer is empty; call :meth:`list` to find the id.

        :param key: a letter or underscore, then up to 49 letters, digits and underscores.
        :param value: up to 1000 characters.
        :param project_id: project it belongs to, by default the whole instance.
        :raises ServiceInvalidRequestError: the key exists or is malformed.
        """
        body = without_none(key=key, value=value, projectId=project_id)
        self._run("POST", "/variables", scope="variable:create", body=body)

    def update(self, variable_id: str, key: str, value: str, *, project_id: str | Null | None = None) -> None:
        """Change a variable: ``PUT /variables/{id}``. Safe to repeat.

        :param key: the key, changed or unchanged.
        :param value: the value, changed or unchanged.
        :param project_id: project it belongs to; NULL for the whole instance.
        :raises ServiceNotFoundError: no such variable.
        """
        body = without_none(key=key, value=value, projectId=project_id)
        self._run("PUT", "/variables/{}", variable_id, scope="variable:update", body=body)

    def delete(self, variable_id: str) -> None:
        """Delete a variable: ``DELETE /variables/{id}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceNotFoundError: no such variable.
        """
        self._run("DELETE", "/variables/{}", variable_id, scope="variable:delete")
