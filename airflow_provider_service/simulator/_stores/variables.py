"""Variables: of the instance, or of one project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._stores.projects import ProjectStore
from airflow_provider_service.simulator._validation import ApiError


class VariableStore:
    """Variables in creation order; a key is unique within the instance, and within each project."""

    def __init__(self, host: Host, projects: ProjectStore) -> None:
        self._host = host
        self._projects = projects
        self._variables: dict[str, dict[str, Any]] = {}

    def all(self, *, project_id: str | None = None, empty: bool = False) -> Sequence[dict[str, Any]]:
        """The variables of a project (None: all variables), or only those with an empty value."""
        return [
            variable
            for variable in self._variables.values()
            if (project_id is None or variable["projectId"] == project_id) and not (empty and variable["value"])
        ]

    def describe(self, variable: dict[str, Any]) -> dict[str, Any]:
        """A variable as the service shows it, with its project."""
        project_id = variable["projectId"]
        return {
            "id": variable["id"],
            "key": variable["key"],
            "value": variable["value"],
            "type": "string",
            "project": None if project_id is None else self._projects.get(project_id),
        }

    def get(self, variable_id: str) -> dict[str, Any]:
        """One variable.

        :raises ApiError: 404
        """
        variable = self._variables.get(variable_id)
        if variable is None:
            raise ApiError(404, f"Variable with id {variable_id} not found")
        return variable

    def named(self, key: str, project_id: str | None = None) -> dict[str, Any] | None:
        """The variable with that key in exactly this place (None: the instance)."""
        same = (v for v in self._variables.values() if v["key"] == key and v["projectId"] == project_id)
        return next(same, None)

    def create(self, key: str, value: str, project_id: str | None = None) -> dict[str, Any]:
        """Create a variable.

        :raises ApiError: 400 taken key, 404 project
        """
        self._check(key, project_id)
        variable: dict[str, Any] = {"id": self._host.new_id(), "key": key, "value": value, "projectId": project_id}
        self._variables[variable["id"]] = variable
        return variable

    def update(self, variable_id: str, key: str, value: str, project_id: str | None) -> None:
        """Replace a variable's key, value and place.

        :raises ApiError: 400 taken key, 404 variable or project
        """
        variable = self.get(variable_id)
        self._check(key, project_id, besides=variable_id)
        variable.update(key=key, value=value, projectId=project_id)

    def delete(self, variable_id: str) -> None:
        """Delete a variable.

        :raises ApiError: 404
        """
        del self._variables[self.get(variable_id)["id"]]

    def delete_project(self, project_id: str) -> None:
        """Delete every variable of a project."""
        self._variables = {key: v for key, v in self._variables.items() if v["projectId"] != project_id}

    def _check(self, key: str, project_id: str | None, *, besides: str | None = None) -> None:
        if project_id is not None:
            self._projects.get(project_id)
        holder = self.named(key, project_id)
        if holder is not None and holder["id"] != besides:
            place = "global" if project_id is None else "project"
            raise ApiError(400, f'A {place} variable with key "{key}" already exists')
