"""Operators that bring an instance to its desired state, and change nothing that already matches it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_service._core.arguments import as_rendered, require
from airflow_provider_service._core.references import PROJECT, Alternatives
from airflow_provider_service.links.service import TABLES_PAGE, VARIABLES_PAGE, WORKFLOWS_PAGE
from airflow_provider_service.operators._base import SealedFieldsMixin, ServiceBaseOperator, mask_all, revealed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.instances.desired_changes import DesiredStatePlan, Prune
    from airflow_provider_service.operators.results import EnsureResult

__all__ = [
    "ServiceEnsureDataTablesOperator",
    "ServiceEnsureProjectsOperator",
    "ServiceEnsureTagsOperator",
    "ServiceEnsureVariablesOperator",
]

_MAX_CHANGES_IN_XCOM = 200
_PRUNED = Alternatives("prune_names", "prune_prefix", is_optional=True)


def _pruning_by_name(prune: bool, names: object, prefix: object) -> None:
    is_named = names is not None or prefix is not None
    require(is_named or not prune, "prune=True needs prune_names or prune_prefix: nothing else is ever deleted")


class _EnsureOperator(ServiceBaseOperator):
    """Base class for operators that compare the desired state with what the instance holds."""

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "path", "prune_names", "prune_prefix")
    joint_checks = {("prune", *_PRUNED.fields): _pruning_by_name}
    page: ClassVar[str]
    path: str | None
    prune: bool
    prune_names: Sequence[str] | None
    prune_prefix: str | None
    allow_empty: bool
    preview: bool

    @abstractmethod
    def plan(self, prune: Prune) -> DesiredStatePlan:
        """Compare the desired state with what the instance holds."""

    def desired(self, name: str) -> Any:
        """Read the desired state from the argument with this name, or from the file."""
        from airflow_provider_service._core.instances.desired_changes import read_desired_state

        return read_desired_state(name, revealed(getattr(self, name)), self.path)

    def perform(self, context: Context) -> EnsureResult:
        from airflow_provider_service._core.instances.desired_changes import Prune

        prune = Prune.of(self.prune, self.prune_names, self.prune_prefix, allow_empty=self.allow_empty)
        url = self.link_page(context, self.page)
        plan = self.plan(prune)
        for number, change in enumerate(plan.changes, start=1):
            self.log.info("%s%s", "would " if self.preview else "", change.words())
            if self.preview:
                continue
            try:
                change.perform(self.hook)
            except Exception:
                words = "Change %d of %d failed; those before it were made, and a repeat makes the rest"
                self.log.error(words, number, len(plan.changes))
                raise
        result: EnsureResult = {
            "created": plan.count("create"),
            "updated": plan.count("update"),
            "deleted": plan.count("delete"),
            "unchanged": plan.unchanged,
            "changes": [change.to_xcom() for change in plan.changes[:_MAX_CHANGES_IN_XCOM]],
            "more": len(plan.changes) > _MAX_CHANGES_IN_XCOM,
            "preview": self.preview,
            "url": url,
        }
        counts = ", ".join(f"{result[name]} {name}" for name in ("created", "updated", "deleted", "unchanged"))
        self.log.info("%s: %s: %s", "Preview" if self.preview else "Done", counts, url)
        return result


class ServiceEnsureTagsOperator(_EnsureOperator):
    """Make sure that these tags exist. Safe to repeat.

    :param tags: names of the tags, 1 to 24 characters each: a list, or text in YAML or JSON.
    :param path: path or address of a YAML or JSON file with them, instead of ``tags``; templates in it are not
        rendered.
    :param prune: True to delete undeclared tags that match ``prune_names`` or ``prune_prefix``; False by default.
        Nothing else is ever deleted. A deleted tag is removed from its workflows. The tag ``airflow-bridge``, by which
        tasks find the bridge, is never deleted.
    :param prune_names: exact names of tags to delete; None (the default) for none.
    :param prune_prefix: beginning of the names of tags to delete, instead of ``prune_names``; None (the default) for
        none.
    :param allow_empty: True to delete what matches ``prune_prefix`` even if nothing is declared; with False, the
        default, the task then fails.
    :param preview: True to return what would change, without changing it; False by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`EnsureResult`: the numbers of tags, and the first 200 changes as ``{"action", "name"}``;
        ``more`` says whether there are more. The action is ``"create"``, ``"update"`` or ``"delete"``. With
        ``preview``, the numbers and changes are those that a run without it would produce.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*_EnsureOperator.template_fields, "tags")
    references = (Alternatives("tags", "path"), _PRUNED)
    page = WORKFLOWS_PAGE

    def __init__(
        self,
        *,
        tags: Templated[Sequence[str] | str | None] = None,
        path: Templated[str | None] = None,
        prune: bool = False,
        prune_names: Templated[Sequence[str] | None] = None,
        prune_prefix: Templated[str | None] = None,
        allow_empty: bool = False,
        preview: bool = False,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.path = as_rendered(path)
        self.prune = prune
        self.prune_names = as_rendered(prune_names)
        self.prune_prefix = as_rendered(prune_prefix)
        self.allow_empty = allow_empty
        self.preview = preview
        self.tags = as_rendered(tags)
        self.check_arguments()

    def plan(self, prune: Prune) -> DesiredStatePlan:
        from airflow_provider_service._core.instances.desired_state import plan_tags

        return plan_tags(self.hook, self.desired("tags"), prune)


class ServiceEnsureVariablesOperator(SealedFieldsMixin, _EnsureOperator):
    """Make sure that these variables exist and have these values. Safe to repeat.

    :param variables: value of each variable by its key: a mapping, or text in YAML or JSON. Values are text of up to
        1000 characters; they are hidden wherever Airflow shows arguments, and are neither logged nor returned.
    :param path: path or address of a YAML or JSON file with them, instead of ``variables``; templates in it are not
        rendered.
    :param project_id: id of the project that the variables belong to; None (the default) for those of the whole
        instance.
    :param project_name: exact name of that project, instead of its id.
    :param prune: True to delete undeclared variables that match ``prune_names`` or ``prune_prefix``; False by default.
        Nothing else is ever deleted.
    :param prune_names: exact names of variables to delete; None (the default) for none.
    :param prune_prefix: beginning of the names of variables to delete, instead of ``prune_names``; None (the default)
        for none.
    :param allow_empty: True to delete what matches ``prune_prefix`` even if nothing is declared; with False, the
        default, the task then fails.
    :param preview: True to return what would change, without changing it; False by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`EnsureResult`: the numbers of variables, and the first 200 changes as ``{"action", "name"}``;
        ``more`` says whether there are more. The action is ``"create"``, ``"update"`` or ``"delete"``. With
        ``preview``, the numbers and changes are those that a run without it would produce.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*_EnsureOperator.template_fields, "variables", *PROJECT.fields)
    references = (Alternatives("variables", "path"), _PRUNED, PROJECT)
    sealed_fields = ("variables",)
    page = VARIABLES_PAGE

    def __init__(
        self,
        *,
        variables: Templated[Mapping[str, str] | str | None] = None,
        path: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        prune: bool = False,
        prune_names: Templated[Sequence[str] | None] = None,
        prune_prefix: Templated[str | None] = None,
        allow_empty: bool = False,
        preview: bool = False,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.path = as_rendered(path)
        self.prune = prune
        self.prune_names = as_rendered(prune_names)
        self.prune_prefix = as_rendered(prune_prefix)
        self.allow_empty = allow_empty
        self.preview = preview
        self.variables = as_rendered(variables)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.check_arguments()

    def plan(self, prune: Prune) -> DesiredStatePlan:
        from airflow_provider_service._core.instances.desired_state import plan_variables, require_valid_variables

        desired = self.desired("variables")
        mask_all(desired)
        require_valid_variables(desired)
        return plan_variables(self.hook, desired, prune, project_id=PROJECT.id_in(self, self.hook))


class ServiceEnsureDataTablesOperator(_EnsureOperator):
    """Make sure that these data tables exist and have these columns. Safe to repeat.

    Missing columns are added to existing tables; other columns, and all rows, are kept.

    :param data_tables: the columns of each table by its name, as ``{"orders": {"sku": "string", "stock": "number"}}``:
        a mapping, or text in YAML or JSON. The types are string, number, boolean and date.
    :param path: path or address of a YAML or JSON file with them, instead of ``data_tables``; templates in it are not
        rendered.
    :param project_id: id of the project of the tables; None (the default) to look them up in all projects, and to
        create missing ones in the personal project of the key's user.
    :param project_name: exact name of that project, instead of its id.
    :param prune: True to delete undeclared data tables that match ``prune_names`` or ``prune_prefix``; False by
        default. Nothing else is ever deleted. A table is deleted with its rows.
    :param prune_names: exact names of data tables to delete; None (the default) for none.
    :param prune_prefix: beginning of the names of data tables to delete, instead of ``prune_names``; None (the default)
        for none.
    :param allow_empty: True to delete what matches ``prune_prefix`` even if nothing is declared; with False, the
        default, the task then fails.
    :param preview: True to return what would change, without changing it; False by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`EnsureResult`: the numbers of data tables, and the first 200 changes as ``{"action", "name",
        "columns" or "added_columns"}``; ``more`` says whether there are more. The action is ``"create"``, ``"update"``
        or ``"delete"``. With ``preview``, the numbers and changes are those that a run without it would produce.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*_EnsureOperator.template_fields, "data_tables", *PROJECT.fields)
    references = (Alternatives("data_tables", "path"), _PRUNED, PROJECT)
    page = TABLES_PAGE

    def __init__(
        self,
        *,
        data_tables: Templated[Mapping[str, Mapping[str, str]] | str | None] = None,
        path: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        prune: bool = False,
        prune_names: Templated[Sequence[str] | None] = None,
        prune_prefix: Templated[str | None] = None,
        allow_empty: bool = False,
        preview: bool = False,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.path = as_rendered(path)
        self.prune = prune
        self.prune_names = as_rendered(prune_names)
        self.prune_prefix = as_rendered(prune_prefix)
        self.allow_empty = allow_empty
        self.preview = preview
        self.data_tables = as_rendered(data_tables)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.check_arguments()

    def plan(self, prune: Prune) -> DesiredStatePlan:
        from airflow_provider_service._core.instances.desired_state import plan_data_tables

        project_id = PROJECT.id_in(self, self.hook)
        return plan_data_tables(self.hook, self.desired("data_tables"), prune, project_id=project_id)


class ServiceEnsureProjectsOperator(_EnsureOperator):
    """Make sure that these team projects exist and have these members. Safe to repeat.

    The service lets several projects have the same name, so do not let two tasks create the same one at the same time:
    there could be two, and tasks that look it up by its name would fail until one of them is deleted.

    :param projects: the members of each project by its name, with their roles by email address, as ``{"Sales":
        {"ana@example.com": "project:editor"}}``: a mapping, or text in YAML or JSON. A member whose role is None is
        removed; members that are not named are kept.
    :param path: path or address of a YAML or JSON file with them, instead of ``projects``; templates in it are not
        rendered.
    :param prune: True to delete undeclared projects that match ``prune_names`` or ``prune_prefix``; False by default.
        Nothing else is ever deleted. A project that holds workflows, credentials, variables or data tables is never
        deleted; to find that out, the key needs the scopes to list them.
    :param prune_names: exact names of projects to delete; None (the default) for none.
    :param prune_prefix: beginning of the names of projects to delete, instead of ``prune_names``; None (the default)
        for none.
    :param allow_empty: True to delete what matches ``prune_prefix`` even if nothing is declared; with False, the
        default, the task then fails.
    :param preview: True to return what would change, without changing it; False by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`EnsureResult`: the numbers of projects, and the first 200 changes as ``{"action", "name",
        "added_members", "changed_members", "removed_members"}``; ``more`` says whether there are more. The action is
        ``"create"``, ``"update"`` or ``"delete"``. With ``preview``, the numbers and changes are those that a run
        without it would produce.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*_EnsureOperator.template_fields, "projects")
    references = (Alternatives("projects", "path"), _PRUNED)
    page = WORKFLOWS_PAGE

    def __init__(
        self,
        *,
        projects: Templated[Mapping[str, Mapping[str, str | None] | None] | str | None] = None,
        path: Templated[str | None] = None,
        prune: bool = False,
        prune_names: Templated[Sequence[str] | None] = None,
        prune_prefix: Templated[str | None] = None,
        allow_empty: bool = False,
        preview: bool = False,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.path = as_rendered(path)
        self.prune = prune
        self.prune_names = as_rendered(prune_names)
        self.prune_prefix = as_rendered(prune_prefix)
        self.allow_empty = allow_empty
        self.preview = preview
        self.projects = as_rendered(projects)
        self.check_arguments()

    def plan(self, prune: Prune) -> DesiredStatePlan:
        from airflow_provider_service._core.instances.desired_state import plan_projects

        return plan_projects(self.hook, self.desired("projects"), prune)
