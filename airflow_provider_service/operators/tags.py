"""Operator for tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import as_rendered
from airflow_provider_service.client._lookup import create_tag
from airflow_provider_service.links.service import WORKFLOWS_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.operators.results import TagResult

__all__ = ["ServiceCreateTagOperator"]


class ServiceCreateTagOperator(ServiceBaseOperator):
    """Create a tag that workflows can carry. Safe to repeat with ``if_exists="skip"``.

    :param name: name of the tag, 1 to 24 characters.
    :param if_exists: what to do if the tag exists: ``"skip"`` (the default) or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`TagResult`; the outcome is ``"created"`` or ``"skipped"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "name")

    def __init__(
        self,
        *,
        name: Templated[str],
        if_exists: Literal["skip", "fail"] = "skip",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.name = as_rendered(name)
        self.if_exists = if_exists
        self.check_arguments()

    def perform(self, context: Context) -> TagResult:
        url = self.link_page(context, WORKFLOWS_PAGE)
        tag, created = create_tag(self.hook, self.name)
        if not created and self.if_exists == "fail":
            raise AirflowFailException(f"tag {tag.name!r} exists with id {tag.id} (if_exists='fail')")
        outcome = "created" if created else "skipped"
        self.log.info("Tag %r (%s) %s: %s", tag.name, tag.id, "was created" if created else "exists", url)
        return {"tag_id": tag.id, "name": tag.name, "outcome": outcome, "url": url}
