"""Operator that installs the bridge, the workflow that starts other workflows for tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_service._core.arguments import as_rendered
from airflow_provider_service._core.references import PROJECT
from airflow_provider_service.links.service import WORKFLOW_PAGE, ServiceWorkflowLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.operators.results import BridgeResult

__all__ = ["ServiceInstallBridgeOperator"]


class ServiceInstallBridgeOperator(ServiceBaseOperator):
    """Install the bridge: create it, or update it if this package defines a newer one. Safe to repeat.

    The bridge is a workflow that starts other workflows, such as those with a sub-workflow trigger, for
    ``ServiceRunWorkflowOperator``. Tasks find it by its tag ``airflow-bridge``, and call it with tokens that are signed
    with the connection's extra ``bridge_secret`` or, without one, with its API key. A connection with another secret
    needs a bridge of its own. A bridge from a newer version of this package is left unchanged.

    The key needs the scopes ``credential:create``, ``tag:create``, ``tag:list``, ``workflow:activate``,
    ``workflow:create``, ``workflow:delete``, ``workflow:list``, ``workflow:read``, ``workflow:update`` and
    ``workflowTags:update``. If some are missing, the task names them before it changes anything. With the scope
    ``credential:read``, which is optional, it also replaces the bridge's credential if that was deleted. If two tasks
    install the bridge at the same time, the later one removes its own bridge and returns the other.

    :param name: name of the workflow if it has to be created; ``"Airflow bridge"`` by default.
    :param project_id: id of the project of the bridge; None (the default) for the personal project of the key's user.
        By default, a workflow can be started only by workflows of its own project.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`BridgeResult`; ``version`` is that of the bridge's definition, and the outcome is ``"created"``,
        ``"updated"`` or ``"unchanged"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "name", *PROJECT.fields)
    references = (PROJECT,)
    operator_extra_links = (ServiceWorkflowLink(),)

    def __init__(
        self,
        *,
        name: Templated[str] = "Airflow bridge",
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.name = as_rendered(name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.check_arguments()

    def perform(self, context: Context) -> BridgeResult:
        from airflow_provider_service._core.runs.bridge import BridgeSecret, Installer, version_of

        secret = BridgeSecret(self.hook.config)
        project_id = PROJECT.id_in(self, self.hook)
        installed = Installer(self.hook, secret, name=self.name, project_id=project_id).install()
        workflow = installed.workflow
        url = self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, workflow.id)
        done = "left unchanged" if installed.outcome == "unchanged" else installed.outcome
        self.log.info("Bridge %s (%s) was %s: %s", workflow.id, workflow.name, done, url)
        return {
            "workflow_id": workflow.id,
            "name": workflow.name,
            "version": version_of(workflow),
            "outcome": installed.outcome,
            "url": url,
        }
