"""Operators on variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.arguments import one_of
from airflow_provider_service.client.errors import ServiceNotFoundError
from airflow_provider_service.client.lookup import find_variable, get_variable
from airflow_provider_service.links import VARIABLES_PAGE, ServicePageLink
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.task_arguments import as_rendered

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service.client.models.variables import Variable
    from airflow_provider_service.task_arguments import TaskArguments, Templated


class _VariableOperator(ServiceBaseOperator):
    """Base of the operators on a variable, which is given by its key."""

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "key", "project_id")
    operator_extra_links = (ServicePageLink(),)

    def __init__(
        self,
        *,
        key: Templated[str],
        project_id: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.key = as_rendered(key)
        self.project_id = as_rendered(project_id)

    def find(self) -> Variable | None:
        return find_variable(self.hook, self.key, project_id=self.project_id)

    def find_existing(self) -> Variable:
        return get_variable(self.hook, self.key, project_id=self.project_id)

    def write(self, found: Variable, value: str) -> str:
        """Write the value if it differs, and return the outcome."""
        if found.value == value:
            return "unchanged"
        self.hook.variables.update(found.id, self.key, value)
        return "updated"

    def report(self, context: Context, variable_id: str | None, outcome: str) -> dict[str, Any]:
        url = self.link_to(context, ServicePageLink(), VARIABLES_PAGE)
        self.log.info("Variable %s (%s) is %s: %s", self.key, variable_id, outcome, url)
        return {"variable_id": variable_id, "key": self.key, "outcome": outcome, "url": url}


class ServiceCreateVariableOperator(_VariableOperator):
    """Create a variable that workflows can read. Safe to repeat unless ``if_exists="fail"``.

    :param key: key of the variable: a letter or underscore, followed by up to 49 letters, digits and underscores.
    :param value: value of up to 1000 characters. It is shown in rendered fields, so do not use it for a secret.
    :param project_id: project that the variable belongs to; None (the default) for the whole instance.
    :param if_exists: what to do if the key exists: ``"update"`` its value (the default), ``"skip"`` or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"variable_id", "key", "outcome", "url"}``; the outcome is ``"created"``, ``"updated"``, ``"unchanged"``
        or ``"skipped"``.
    """

    template_fields: Sequence[str] = (*_VariableOperator.template_fields, "value")
    blank_fields = ("value",)
    checks = {"if_exists": one_of("update", "skip", "fail")}

    def __init__(
        self,
        *,
        key: Templated[str],
        value: Templated[str],
        project_id: Templated[str | None] = None,
        if_exists: Literal["update", "skip", "fail"] = "update",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(key=key, project_id=project_id, service_conn_id=service_conn_id, **kwargs)
        self.value = as_rendered(value)
        self.if_exists = if_exists
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Create the variable, or handle the existing one according to ``if_exists``."""
        found = self.find()
        if found is None:
            self.hook.variables.create(self.key, self.value, project_id=self.project_id)
            return self.report(context, self.find_existing().id, "created")
        if self.if_exists == "fail":
            raise AirflowFailException(f"variable {self.key!r} exists with id {found.id} (if_exists='fail')")
        if self.if_exists == "skip":
            return self.report(context, found.id, "skipped")
        return self.report(context, found.id, self.write(found, self.value))


class ServiceUpdateVariableOperator(_VariableOperator):
    """Change the value of a variable, which must exist. Safe to repeat.

    :param key: key of the variable.
    :param value: value of up to 1000 characters. It is shown in rendered fields, so do not use it for a secret.
    :param project_id: project that the variable belongs to; None (the default) for the whole instance.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"variable_id", "key", "outcome", "url"}``; the outcome is ``"updated"`` or ``"unchanged"``.
    """

    template_fields: Sequence[str] = (*_VariableOperator.template_fields, "value")
    blank_fields = ("value",)

    def __init__(
        self,
        *,
        key: Templated[str],
        value: Templated[str],
        project_id: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(key=key, project_id=project_id, service_conn_id=service_conn_id, **kwargs)
        self.value = as_rendered(value)
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Find the variable and write its value."""
        found = self.find_existing()
        return self.report(context, found.id, self.write(found, self.value))


class ServiceDeleteVariableOperator(_VariableOperator):
    """Delete a variable. Safe to repeat with ``if_missing="ignore"``.

    :param key: key of the variable.
    :param project_id: project that the variable belongs to; None (the default) for the whole instance.
    :param if_missing: what to do if the variable does not exist: ``"ignore"`` (the default) or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"variable_id", "key", "outcome", "url"}``; the outcome is ``"deleted"`` or ``"missing"``.
    """

    checks = {"if_missing": one_of("ignore", "fail")}

    def __init__(
        self,
        *,
        key: Templated[str],
        project_id: Templated[str | None] = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(key=key, project_id=project_id, service_conn_id=service_conn_id, **kwargs)
        self.if_missing = if_missing
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Find the variable and delete it."""
        found = self.find_existing() if self.if_missing == "fail" else self.find()
        if found is None:
            return self.report(context, None, "missing")
        try:
            self.hook.variables.delete(found.id)
        except ServiceNotFoundError:
            # It has just been read: someone else deleted it, or the answer to this call's first try was lost.
            self.log.info("Variable %s has already been deleted", self.key)
        return self.report(context, found.id, "deleted")
