"""Operators for variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import as_rendered, required
from airflow_provider_service._core.references import PROJECT, VARIABLE
from airflow_provider_service.client._lookup import create_variable, find_variable, find_variable_by_id, get_variable
from airflow_provider_service.client.errors import ServiceLookupError, ServiceNotFoundError
from airflow_provider_service.links.service import VARIABLES_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.references import Alternatives
    from airflow_provider_service.client.models import Variable
    from airflow_provider_service.operators.results import VariableResult

__all__ = ["ServiceCreateVariableOperator", "ServiceDeleteVariableOperator", "ServiceUpdateVariableOperator"]


class _VariableOperator(ServiceBaseOperator):
    """Base class for operators on a variable, which belongs to a project or to the whole instance."""

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "key", *PROJECT.fields)
    references: ClassVar[Sequence[Alternatives]] = (PROJECT,)
    key: str | None

    def find(self, key: str) -> Variable | None:
        return find_variable(self.hook, key, project_id=self.owner_id)

    @cached_property
    def owner_id(self) -> str | None:
        return PROJECT.id_in(self, self.hook)

    def write(self, variable: Variable, value: str) -> str:
        if variable.value == value:
            return "unchanged"
        self.hook.variables.update(variable.id, variable.key, value)
        return "updated"

    def report(self, context: Context, variable_id: str | None, key: str | None, outcome: str) -> VariableResult:
        url = self.link_page(context, VARIABLES_PAGE)
        self.log.info("Variable %s (%s) is %s: %s", key, variable_id, outcome, url)
        return {"variable_id": variable_id, "key": key, "outcome": outcome, "url": url}


class _ExistingVariableOperator(_VariableOperator):
    template_fields: Sequence[str] = (*_VariableOperator.template_fields, "variable_id")
    references = (VARIABLE, PROJECT)
    variable_id: str | None

    def find_given(self) -> Variable | None:
        """Return the variable with the given id or key, or None."""
        if self.variable_id is not None:
            return find_variable_by_id(self.hook, self.variable_id)
        return self.find(required("key", self.key))

    def find_existing(self) -> Variable:
        variable: Variable | None
        variable = VARIABLE.named_in(self, self.hook) if self.variable_id is None else self.find_given()
        if variable is None:
            raise ServiceLookupError(
                f"there is no variable with the id {self.variable_id!r}, or this key may not see it"
            )
        return variable


class ServiceCreateVariableOperator(_VariableOperator):
    """Create a variable that workflows can read. Safe to repeat unless ``if_exists="fail"``.

    :param key: key of the variable: a letter or underscore, followed by up to 49 letters, digits and underscores.
    :param value: value of up to 1000 characters. It is shown in rendered fields, so do not use it for a secret.
    :param project_id: id of the project that the variable belongs to; None (the default) for the whole instance.
    :param project_name: exact name of that project, instead of its id.
    :param if_exists: what to do if the key exists: ``"update"`` its value (the default), ``"skip"`` or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`VariableResult`; the outcome is ``"created"``, ``"updated"``, ``"unchanged"`` or ``"skipped"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*_VariableOperator.template_fields, "value")
    blank_fields = ("value",)

    def __init__(
        self,
        *,
        key: Templated[str],
        value: Templated[str],
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        if_exists: Literal["update", "skip", "fail"] = "update",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.key = as_rendered(key)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.value = as_rendered(value)
        self.if_exists = if_exists
        self.check_arguments()

    def perform(self, context: Context) -> VariableResult:
        key = required("key", self.key)
        existing = self.find(key) or create_variable(self.hook, key, self.value, project_id=self.owner_id)
        if existing is None:
            created = get_variable(self.hook, key, project_id=self.owner_id)
            return self.report(context, created.id, key, "created")
        if self.if_exists == "fail":
            raise AirflowFailException(f"variable {key!r} exists with id {existing.id} (if_exists='fail')")
        outcome = "skipped" if self.if_exists == "skip" else self.write(existing, self.value)
        return self.report(context, existing.id, key, outcome)


class ServiceUpdateVariableOperator(_ExistingVariableOperator):
    """Change the value of a variable, which must exist. Safe to repeat.

    :param variable_id: id of the variable; give either the id or the key.
    :param key: exact key of the variable.
    :param value: value of up to 1000 characters. It is shown in rendered fields, so do not use it for a secret.
    :param project_id: id of the project that the variable belongs to; None (the default) for the whole instance.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`VariableResult`; the outcome is ``"updated"`` or ``"unchanged"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*_ExistingVariableOperator.template_fields, "value")
    blank_fields = ("value",)

    def __init__(
        self,
        *,
        variable_id: Templated[str | None] = None,
        key: Templated[str | None] = None,
        value: Templated[str],
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.variable_id = as_rendered(variable_id)
        self.key = as_rendered(key)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.value = as_rendered(value)
        self.check_arguments()

    def perform(self, context: Context) -> VariableResult:
        variable = self.find_existing()
        return self.report(context, variable.id, variable.key, self.write(variable, self.value))


class ServiceDeleteVariableOperator(_ExistingVariableOperator):
    """Delete a variable. Safe to repeat with ``if_missing="ignore"``.

    :param variable_id: id of the variable; give either the id or the key.
    :param key: exact key of the variable.
    :param project_id: id of the project that the variable belongs to; None (the default) for the whole instance.
    :param project_name: exact name of that project, instead of its id.
    :param if_missing: what to do if the variable does not exist: ``"ignore"`` (the default) or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`VariableResult`; the outcome is ``"deleted"`` or ``"missing"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    def __init__(
        self,
        *,
        variable_id: Templated[str | None] = None,
        key: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.variable_id = as_rendered(variable_id)
        self.key = as_rendered(key)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.if_missing = if_missing
        self.check_arguments()

    def perform(self, context: Context) -> VariableResult:
        variable = self.find_existing() if self.if_missing == "fail" else self.find_given()
        if variable is None:
            return self.report(context, self.variable_id, self.key, "missing")
        try:
            self.hook.variables.delete(variable.id)
        except ServiceNotFoundError:
            # It has just been read: someone else deleted it, or the answer to this call's first try was lost.
            self.log.info("Variable %s has already been deleted", variable.key)
        return self.report(context, variable.id, variable.key, "deleted")
