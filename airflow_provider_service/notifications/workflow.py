"""A notifier that sends alerts to a workflow."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.notifier import BaseNotifier

from airflow_provider_service._core.arguments import require_flag
from airflow_provider_service._core.references import PROJECT, WORKFLOW
from airflow_provider_service.client._values import one_line, shown

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from jinja2 import Environment

    from airflow_provider_service._airflow.connection import WebhookHeaders
    from airflow_provider_service.client import ServiceConfig

__all__ = ["ServiceNotifier"]

MAX_EXCEPTION_CHARS = 1000


class ServiceNotifier(BaseNotifier):
    """Notify a workflow about a task or DAG run, for ``on_failure_callback`` and the like, without waiting for it.

    Not safe to repeat: each call runs the workflow. One notifier may serve many tasks and runs: each call renders its
    templates anew.

    The workflow receives ``{"message", "dag_id", "run_id", "task_id", "map_index", "try_number", "state", "log_url",
    "exception", "details"}`` on its production webhook. Values that the context lacks are null, and values that
    Airflow knows as secrets are masked in the exception. If the webhook's method is ``GET``, the query carries them.

    If a template uses a value that the context lacks, such as ``ds`` in a run without a logical date, the notifier logs
    that, renders the value as empty text, and sends the alert. A text that cannot be rendered even so, such as
    ``{{ ds | int }}``, is sent as it is.

    If the webhook does not answer within the connection's ``timeout``, the notifier logs a warning, since the workflow
    may still run; if the webhook should answer as soon as the run begins, that is an error.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param message: human-readable text; empty by default.
    :param details: further JSON data for the workflow; null by default.
    :param trigger_node: name of the webhook node; required if the workflow has several; None (the default) for the only
        one.
    :param webhook_conn_id: Airflow connection with the webhook's own authentication, if it has one.
    :param activate: True (the default) to activate the workflow if it is not active, which publishes its draft, because
        a lost alert costs more; with False, such a workflow is an error.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    """

    template_fields: Sequence[str] = (
        *WORKFLOW.fields,
        *PROJECT.fields,
        "message",
        "details",
        "trigger_node",
        "webhook_conn_id",
        "service_conn_id",
    )

    def __init__(
        self,
        *,
        workflow_id: str | None = None,
        workflow_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        message: str = "",
        details: Any = None,
        trigger_node: str | None = None,
        webhook_conn_id: str | None = None,
        activate: bool = True,
        service_conn_id: str = "service_default",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.workflow_id = workflow_id
        self.workflow_name = workflow_name
        self.project_id = project_id
        self.project_name = project_name
        self.message = message
        self.details = details
        self.trigger_node = trigger_node
        self.webhook_conn_id = webhook_conn_id
        self.activate = activate
        self.service_conn_id = service_conn_id
        for reference in (WORKFLOW, PROJECT):
            reference.check(self, are_rendered=False)
        require_flag("activate", activate)

    # Airflow renders the arguments in place, but calls the same notifier for several runs: each call gets a copy.

    def __call__(self, *args: Any) -> None:
        """Send an alert."""
        super(ServiceNotifier, copy(self)).__call__(*args)

    def __await__(self) -> Generator[Any, Any, None]:
        """Send an alert about :attr:`context`, from an event loop."""
        return super(ServiceNotifier, copy(self)).__await__()

    def render_template_fields(self, context: Context, jinja_env: Environment | None = None) -> None:
        """Render the arguments; values that the context lacks become empty text."""
        from jinja2 import ChainableUndefined, make_logging_undefined

        class Absent(ChainableUndefined):
            """Stays missing in any expression: ``logical_date.isoformat()``, ``data_interval_end + one_day``."""

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                return self

            __add__ = __radd__ = __sub__ = __rsub__ = __call__

        env = jinja_env or self.get_template_env(dag=context.get("dag"))
        undefined = make_logging_undefined(self.log, base=Absent)  # type: ignore[arg-type]
        overlay = env.overlay(undefined=undefined)
        for name in self.template_fields:  # before 3.3, Airflow itself keeps a template that renders to nothing
            setattr(self, name, self.render_template(getattr(self, name), context, overlay))

    def render_template(
        self, content: Any, context: Context, jinja_env: Environment | None = None, seen_oids: set[int] | None = None
    ) -> Any:
        """Render a value; a text that cannot be rendered stays as it is."""
        if not isinstance(content, str):
            return super().render_template(content, context, jinja_env, seen_oids)
        try:
            return _without_absent(super().render_template(content, context, jinja_env, seen_oids))
        except Exception as error:  # noqa: BLE001 - an alert without its values is better than none
            self.log.warning("%s cannot be rendered, and is sent as it is: %s", shown(content), one_line(str(error)))
            return content

    def notify(self, context: Context) -> None:
        """Call the workflow's webhook."""
        from airflow_provider_service._airflow.connection import WebhookHeaders
        from airflow_provider_service.hooks.service import ServiceHook

        hook = ServiceHook(self.service_conn_id)
        headers = WebhookHeaders(hook.get_connection(self.webhook_conn_id) if self.webhook_conn_id else None, None)
        self._send(hook.config, headers, self._notice(context))

    async def async_notify(self, context: Context) -> None:
        """Call the workflow's webhook from an event loop."""
        from airflow.providers.common.compat.connection import get_async_connection

        from airflow_provider_service._airflow.connection import WebhookHeaders, config_for
        from airflow_provider_service._core.daemon_threads import in_daemon_thread

        config = await config_for(self.service_conn_id)
        headers = WebhookHeaders(
            await get_async_connection(self.webhook_conn_id) if self.webhook_conn_id else None, None
        )
        await in_daemon_thread(self._send, config, headers, self._notice(context))

    def _send(self, config: ServiceConfig, headers: WebhookHeaders, notice: dict[str, Any]) -> None:
        from airflow_provider_service._core.runs.request import RunRequest
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.client._http.encoding import to_json
        from airflow_provider_service.client.errors import ServiceTimeoutError

        with ServiceClient(config) as client:
            workflow = client.workflows.get(WORKFLOW.required_id_in(self, client))
            trigger = client.webhooks.find(workflow, self.trigger_node)
            # A query cannot contain nested values.
            payload = notice if trigger.has_body else {**notice, "details": to_json(self.details)}
            RunRequest(workflow, payload, self.trigger_node, headers, self.activate).make_active(client)
            try:
                answer = client.webhooks.call(trigger, payload, headers=headers(trigger.authentication))
            except ServiceTimeoutError:
                if trigger.response_mode == "onReceived":
                    raise
                self.log.warning(
                    "Workflow %s has not answered within %g s; it may still run, or may not have been started",
                    workflow.id,
                    config.timeout,
                )
            else:
                self.log.info("Workflow %s was notified, and answered %d", workflow.id, answer.status)

    def _notice(self, context: Context) -> dict[str, Any]:
        from airflow.providers.common.compat.sdk import redact

        ti = context.get("ti")
        run = context.get("dag_run")
        exception = context.get("exception")
        state = getattr(ti, "state", None) or getattr(run, "state", None)
        map_index = getattr(ti, "map_index", None)
        return {
            "message": self.message,
            # Of a DAG run without a last task instance, Airflow 3.3 passes only the DAG and the id.
            "dag_id": getattr(ti or run or context.get("dag"), "dag_id", None),
            "run_id": getattr(ti or run, "run_id", context.get("run_id")),
            "task_id": getattr(ti, "task_id", None),
            "map_index": None if map_index == -1 else map_index,  # as Airflow has it for a task that is not mapped
            "try_number": getattr(ti, "try_number", None),
            "state": str(getattr(state, "value", state)) if state else None,
            "log_url": getattr(ti, "log_url", None),
            "exception": str(redact(str(exception)))[:MAX_EXCEPTION_CHARS] if exception else None,
            "details": self.details,
        }


def _without_absent(value: Any) -> Any:
    """Put empty text in place of the values that the context lacks; native rendering returns them, also in a list."""
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        return ""
    if isinstance(value, dict):
        return {name: _without_absent(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_absent(inner) for inner in value]
    return value
