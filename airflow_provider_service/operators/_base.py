"""The base class of all operators, and mixins for template fields that hold secrets or text that is not rendered.

Airflow renders fields in ``_do_render_template_fields``, the only method that plain and mapped tasks share. It stores
the arguments of a task with its DAG, and the rendered fields before the task executes. So a secret is sealed both as
soon as it is given and as soon as it is rendered.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowTaskTimeout, BaseOperator, mask_secret

from airflow_provider_service._airflow.attempts import fail_without_retry, failure_reported
from airflow_provider_service._core.arguments import (
    CheckedArguments,
    as_rendered,
    has_template,
    require,
    require_context,
)
from airflow_provider_service.client._http.redaction import hidden
from airflow_provider_service.client._values import MAX_NESTING, is_too_deep
from airflow_provider_service.client.errors import ServiceTaskKilledError
from airflow_provider_service.links.service import ServiceLink, ServicePageLink, page_url

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.hooks.service import ServiceHook


#: Template fields that say on what a task acts, or must not act. Of those that belong together, one suffices.
_CHOOSING_FIELDS = (
    ("workflow_id", "workflow_name", "execution_ids"),
    ("project_id", "project_name"),
    ("destination_project_id", "destination_project_name"),
    ("parent_folder_id", "parent_folder_name"),
    ("tag_id", "tag_name"),
    ("credential_id", "credential_name"),
    ("filter", "row_ids"),
    *((name,) for name in ("status", "started_before", "workflow_names", "names", "kinds", "types", "object_ids")),
    *((name,) for name in ("search", "columns", "categories", "version", "version_id", "arguments")),
)


class ServiceBaseOperator(CheckedArguments, BaseOperator):
    """Base class of all operators: connection, hook, links, and checks of arguments."""

    template_fields: Sequence[str] = ("service_conn_id",)
    operator_extra_links: Sequence[ServiceLink] = (ServicePageLink(),)
    #: Template fields that may be empty text.
    blank_fields: Sequence[str] = ()
    #: The variables of Airflow's context that the task needs.
    context_names: ClassVar[Sequence[str]] = ("ti",)
    #: The addresses that this process has pushed, by XCom key; None until it begins the task.
    pushed_links: dict[str, str] | None = None
    #: The template fields that had a value before they were rendered.
    _given_fields: Sequence[str] = ()
    ui_color = "#ede9fe"

    def __init__(self, *, service_conn_id: Templated[str] = "service_default", **kwargs: Unpack[TaskArguments]) -> None:
        super().__init__(**kwargs)
        self.service_conn_id = as_rendered(service_conn_id)

    def execute(self, context: Context) -> Any:
        """Check the rendered arguments and perform the task. Errors that would recur are not retried."""
        with failure_reported(context), fail_without_retry():
            require_context(context, self.context_names)
            self.pushed_links = {}
            self._refuse_empty_fields()
            self.check_arguments(are_rendered=True)
            result = self.perform(context)
            self.note_result(context, result)
            return result

    @abstractmethod
    def perform(self, context: Context) -> Any:
        """Perform the task and return its XCom value."""

    def note_result(self, context: Context, result: Any) -> None:
        """Handle the result before the task returns it; does nothing by default."""

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        # Airflow also calls this for what is inside a field.
        if parent is self:
            self._given_fields = [name for name in self.template_fields if getattr(self, name) is not None]
        super()._do_render_template_fields(parent, *args, **kwargs)

    def _refuse_empty_fields(self) -> None:
        # To the service, an empty value would often mean "all".
        for name in self.template_fields:
            value = revealed(getattr(self, name))
            is_blank = isinstance(value, str) and not value.strip()
            require(not is_blank or name in self.blank_fields, f"{name} is empty; give a value, or leave it out")
        # The output of another task can be None, and so can a template that renders to a native object. Without such a
        # value, the task would act on more than the DAG says.
        for names in _CHOOSING_FIELDS:
            given = [name for name in names if name in self._given_fields]
            has_value = any(getattr(self, name) is not None for name in given)
            require(has_value or not given, f"{' and '.join(given)} is None; give a value, or leave it out")

    @cached_property
    def hook(self) -> ServiceHook:
        from airflow_provider_service.hooks.service import ServiceHook

        return ServiceHook(self.service_conn_id)

    def link_to(self, context: Context, link: ServiceLink, page: str, *ids: str | int) -> str:
        url = page_url(self.hook.config.base_url, page, *ids)
        link.push(context, url)
        return url

    def link_page(self, context: Context, page: str, *ids: str | int) -> str:
        """Point the task's usual link at a page of the service and return the address."""
        return self.link_to(context, ServicePageLink(), page, *ids)


class RollingBackMixin:
    """Mixin for operators that deploy workflows: if the task is killed, which Airflow 3 only tells, they roll back."""

    _is_killed = False

    def on_kill(self) -> None:
        """End the task, unless it is rolling back already: the signal may come twice, and after a timeout."""
        from airflow_provider_service._core.instances.rollback import is_rolling_back

        super().on_kill()  # type: ignore[misc]
        if not (self._is_killed or is_rolling_back.get() or isinstance(sys.exc_info()[1], AirflowTaskTimeout)):
            self._is_killed = True
            raise ServiceTaskKilledError("the task was killed")


class Sealed:
    """A rendered value that stays hidden wherever Airflow shows rendered fields, and in tracebacks."""

    def __init__(self, value: Any) -> None:
        self._value = hidden(value)

    def reveal(self) -> Any:
        return self._value

    def __repr__(self) -> str:
        return "***"


class SealedFieldsMixin:
    #: Template fields whose values are hidden.
    sealed_fields: Sequence[str] = ()

    @classmethod
    def partial(cls, **kwargs: Any) -> Any:
        """Set the arguments that all mapped tasks share; those that differ are sealed when they are given."""
        partial = super().partial(**_sealed_in(kwargs, cls.sealed_fields))  # type: ignore[misc]
        # Airflow always instantiates its own class, and its objects take no further attributes.
        partial.__class__ = _sealing_partial(type(partial))
        return partial

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, _sealed(name, value) if name in self.sealed_fields else value)

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        super()._do_render_template_fields(parent, *args, **kwargs)  # type: ignore[misc]
        for name in self.sealed_fields:
            value = revealed(getattr(parent, name))
            if value is not None:
                mask_all(value)
                setattr(parent, name, Sealed(value))


def _sealing_partial(kind: type[Any]) -> type[Any]:
    """Extend Airflow's class for ``partial``, so that arguments that differ between mapped tasks are sealed too."""

    class Sealing(kind):  # type: ignore[misc]
        __slots__ = ()

        def expand(self, **kwargs: Any) -> Any:
            return super().expand(**_sealed_in(kwargs, self.operator_class.sealed_fields))

        def expand_kwargs(self, kwargs: Any, **options: Any) -> Any:
            fields = self.operator_class.sealed_fields
            if isinstance(kwargs, (list, tuple)):
                kwargs = [_sealed_in(item, fields) if isinstance(item, Mapping) else item for item in kwargs]
            return super().expand_kwargs(kwargs, **options)

    return Sealing


def _sealed_in(arguments: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    return {name: _sealed(name, value) if name in fields else value for name, value in arguments.items()}


def _sealed(name: str, value: Any) -> Any:
    require(not is_too_deep(value), f"{name} must not be nested more than {MAX_NESTING} levels deep; nothing was done")
    return sealed_literals(value)


def sealed_literals(value: Any) -> Any:
    """Seal all text in a value, except templates."""
    if isinstance(value, str):
        return value if has_template(value) else Sealed(value)
    return _inside(value, sealed_literals)


def revealed(value: Any) -> Any:
    return revealed(value.reveal()) if isinstance(value, Sealed) else _inside(value, revealed)


def _inside(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: change(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [change(inner) for inner in value]
    return value


def mask_all(value: Any) -> None:
    """Mask all text in a value in the logs of the task."""
    if isinstance(value, str):
        mask_secret(str(value))
    elif isinstance(value, (Mapping, Sequence)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            mask_all(inner)


class VerbatimFieldsMixin:
    """Mixin for template fields whose braces are not Airflow's: outputs of tasks and files are resolved, no text."""

    #: Template fields whose text is not rendered.
    verbatim_fields: Sequence[str] = ()
    _paths_of_dag_file: frozenset[str] = frozenset()

    def resolve_template_files(self) -> None:
        """Remember the paths that the DAG file names; Airflow calls this when it parses the file, before tasks run."""
        values = (getattr(self, name) for name in self.verbatim_fields)
        self._paths_of_dag_file = frozenset(value for value in values if isinstance(value, str))
        super().resolve_template_files()  # type: ignore[misc]

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        for name in self.verbatim_fields:
            setattr(parent, name, verbatim(getattr(parent, name)))
        super()._do_render_template_fields(parent, *args, **kwargs)  # type: ignore[misc]
        # Airflow itself reads only files that the DAG file names, not those of mapped fields or of a task's output.
        for name in self.verbatim_fields:
            setattr(parent, name, _content_of_path(getattr(parent, name), parent))


def verbatim(value: Any) -> Any:
    """Return the value with all text marked as literal; the output of other tasks in it is still resolved."""
    from airflow.providers.common.compat.sdk import literal

    return literal(value) if isinstance(value, str) else _inside(value, verbatim)


def is_path(value: Any, endings: Sequence[str]) -> bool:
    """Whether a value of a template field is the path of a file with one of these endings."""
    return isinstance(value, str) and value.endswith(tuple(endings)) and "\n" not in value


def template_folders(task: Any) -> list[Path]:
    loader = task.get_template_env().loader
    return [Path(folder) for folder in getattr(loader, "searchpath", ())]


def _content_of_path(value: Any, task: Any) -> Any:
    """Return the content of the file that the value names, or the value itself if it is not the path of a file."""
    if not is_path(value, task.template_ext):
        return value
    folders = template_folders(task)
    try:
        file = next((file for folder in folders or [Path()] if (file := folder / value).is_file()), None)
        if file is None:
            return value
        real = file.resolve()
        if value in task._paths_of_dag_file or any(real.is_relative_to(folder.resolve()) for folder in folders):
            return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise AirflowFailException(f"the file {value!r} is not UTF-8 text") from error
    except OSError as error:
        raise AirflowFailException(f"the file {value!r} cannot be read: {error.strerror}") from error
    raise AirflowFailException(
        f"the file {value!r} is outside the DAG's folder and its template_searchpath; only the DAG file itself can "
        "name it, in a task that is not mapped, and not the output of another task"
    )
