"""Operator for every method of the hook that has no dedicated operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import as_rendered, read_count, require, require_mapping
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.links.service import WORKFLOWS_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated

__all__ = ["ServiceOperator"]


class ServiceOperator(ServiceBaseOperator):
    """Call any method of the hook. Safe to repeat if the documentation of the method says so.

    ``ServiceOperator(task_id="tag", resource="tags", action="update", arguments={"tag_id": "...", "name": "..."})``
    calls ``hook.tags.update(tag_id="...", name="...")``. The resource, the action and the names of arguments are
    checked when the task runs; a wrong one fails the task with a list of the valid ones.

    :param resource: attribute of the hook, e.g. ``"workflows"``.
    :param action: method of the resource, e.g. ``"list_history"``.
    :param arguments: arguments of the method by name, none by default. One that renders to None fails the task, because
        many methods would act on more without it. They are shown in rendered fields, so pass no secrets. The service's
        own expressions look like templates: pass them as ``literal("={{ $json.id }}")``, with ``literal`` from
        ``airflow.sdk`` (``airflow.utils.template`` before Airflow 3), which also accepts a whole mapping, such as a
        node.
    :param limit: maximum number of items of a list to return; 1000 by default. If there are more, the task fails.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: the answer as JSON, with the service's own field names and without secret fields, such as the address
        at which an invitation is accepted; None if the answer is empty.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "resource", "action", "arguments")
    template_fields_renderers = {"arguments": "json"}
    #: The arguments of the method that had a value before they were rendered.
    _given_arguments: Sequence[str] = ()

    def __init__(
        self,
        *,
        resource: Templated[str],
        action: Templated[str],
        arguments: Templated[Mapping[str, Any] | None] = None,
        limit: int = 1000,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.resource = as_rendered(resource)
        self.action = as_rendered(action)
        self.arguments = as_rendered(arguments)
        self.limit = limit
        self.check_arguments()

    def perform(self, context: Context) -> Any:
        method = self._method()
        arguments = self._checked_arguments(method)
        url = self.link_page(context, WORKFLOWS_PAGE)
        answer = method(**arguments)
        result = self._consume(answer) if isinstance(answer, Iterator) else _to_json(answer)
        size = f"{len(result)} items" if isinstance(result, list) else type(result).__name__
        self.log.info("%s.%s answered %s: %s", self.resource, self.action, size, url)
        return result

    def _method(self) -> Callable[..., Any]:
        from airflow_provider_service.client._client import Resources

        names = {name for name, value in vars(Resources).items() if isinstance(value, cached_property)}
        # A webhook is called with an object that was looked up before, which a task cannot pass.
        resources = sorted(names - {"webhooks"})
        require(
            self.resource in resources,
            f"there is no resource {self.resource!r}; the resources are {', '.join(resources)}",
        )
        resource = getattr(self.hook.client, self.resource)  # what the hook adds has operators of its own
        members = inspect.getmembers(resource, inspect.ismethod)
        methods: dict[str, Callable[..., Any]] = {name: method for name, method in members if not name.startswith("_")}
        require(
            self.action in methods,
            f"{self.resource} has no action {self.action!r}; its actions are {', '.join(methods)}",
        )
        return methods[self.action]

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        if parent is self and isinstance(self.arguments, Mapping):
            self._given_arguments = [name for name, value in self.arguments.items() if value is not None]
        super()._do_render_template_fields(parent, *args, **kwargs)

    def _checked_arguments(self, method: Callable[..., Any]) -> dict[str, Any]:
        arguments = {} if self.arguments is None else self.arguments
        require_mapping("arguments", arguments)
        for name in self._given_arguments:  # to the client, None means that it was left out, and so often "all"
            require(arguments.get(name) is not None, f"arguments: {name} is None; give a value, or leave it out")
        signature = inspect.signature(method)
        try:
            signature.bind(**arguments)
        except TypeError as error:
            names = [
                name if parameter.default is parameter.empty else f"{name} (optional)"
                for name, parameter in signature.parameters.items()
            ]
            raise ServiceInputError(
                f"{self.resource}.{self.action}: {error}; its arguments are {', '.join(names) or 'none'}"
            ) from None
        return dict(arguments)

    def _consume(self, items: Iterator[Any]) -> list[Any]:
        limit = read_count("limit", self.limit)
        answers = [_to_json(item) for item in islice(items, limit + 1)]
        if len(answers) > limit:
            raise AirflowFailException(
                f"{self.resource}.{self.action} has more than limit={limit} items; raise limit, narrow the "
                "selection, or give the argument 'limit' to take only the first ones"
            )
        return answers


def _to_json(value: Any) -> Any:
    from airflow_provider_service.client.models import ServiceModel

    if isinstance(value, ServiceModel):
        return value.without_secrets()
    if isinstance(value, Mapping):
        return {name: _to_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_to_json(inner) for inner in value]
    return value
