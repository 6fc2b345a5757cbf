"""``@task.service_workflow``: a function returns the payload, and the task runs a workflow with it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import DecoratedOperator, determine_kwargs, task_decorator_factory

from airflow_provider_service._core.arguments import require
from airflow_provider_service.operators._base import sealed_literals
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, TaskDecorator

    from airflow_provider_service.operators.results import RunResult

__all__ = ["ServiceWorkflowDecoratedOperator", "service_workflow_task"]

# The function returns the payload, so that is neither an argument nor rendered: data with braces stays as it is.
_FIELDS = tuple(name for name in ServiceRunWorkflowOperator.template_fields if name != "payload")


class ServiceWorkflowDecoratedOperator(DecoratedOperator, ServiceRunWorkflowOperator):
    """The operator of the tasks that ``@task.service_workflow`` creates.

    :param python_callable: the function; it returns the payload, or None for a run without payload.
    :param op_args: its positional arguments.
    :param op_kwargs: its named arguments.
    :param kwargs: the arguments of ``ServiceRunWorkflowOperator``, except ``payload``.
    """

    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *_FIELDS)
    template_fields_renderers = {**DecoratedOperator.template_fields_renderers}
    custom_operator_name = "@task.service_workflow"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        require("payload" not in kwargs, "payload is what the function returns; it cannot be an argument as well")
        require(not iscoroutinefunction(python_callable), "the function of @task.service_workflow must not be async")
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            **{"return_output": "last_node", **kwargs},
        )

    def perform(self, context: Context) -> Any:
        """Call the function, and run the workflow with what it returns."""
        # A new mapping, so that no argument of the function replaces the parts of the context that identify the run.
        known = ChainMap(dict(self.op_kwargs), context)  # type: ignore[arg-type]
        named = determine_kwargs(self.python_callable, self.op_args, known)
        self.payload = self.python_callable(*self.op_args, **named)
        return _only_output(super().perform(context))

    @staticmethod
    def xcom_push(context: Context, key: str, value: Any) -> None:
        """Push a value; Airflow 3.0 requires this method of the operator of every decorator."""
        context["ti"].xcom_push(key=key, value=value)

    def execute_complete(self, context: Context, event: Any, workflow_name: str | None = None) -> Any:
        """End the task according to the event of the trigger; the function is not called again."""
        return _only_output(super().execute_complete(context, event, workflow_name))


def _only_output(result: RunResult) -> Any:
    if "output" not in result:
        return result
    return result["output_path"] or result["output"]


def service_workflow_task(
    python_callable: Callable[..., Any] | None = None, *, multiple_outputs: bool = False, **kwargs: Any
) -> TaskDecorator:
    """Make a task that runs a workflow with the payload that a function returns: ``@task.service_workflow(...)``.

    Safe to repeat: as with ``ServiceRunWorkflowOperator``, there is one execution per task run. Each attempt calls the
    function, but an attempt that resumes an execution does not use what it returns.

    :param python_callable: the function. It returns the payload, such as the JSON body of the call, or None for no
        payload; a generator is refused.
    :param multiple_outputs: push each value of the result as a separate XCom; False by default. It only makes sense
        with ``return_output="none"``.
    :param kwargs: the arguments of ``ServiceRunWorkflowOperator``, except ``payload``, and those of any task.
        ``return_output`` is ``"last_node"`` by default.
    :returns: the decorator. Its task returns the output of the run: the list of JSON items of the last node, or None if
        they are larger than 48 kB or not available. With ``output_path``, it returns the address of the file that holds
        larger items. With ``return_output="none"`` or without ``wait_for_completion``, it returns what
        ``ServiceRunWorkflowOperator`` returns. It pushes the id of the execution as ``execution_id``.
    """
    # Airflow would infer multiple_outputs from the function's annotation, which describes the payload, not the result.
    made: Any = task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=ServiceWorkflowDecoratedOperator,
        **_checked_and_sealed(kwargs),
    )
    if python_callable is not None:
        return _checking_overrides(made)
    return cast("TaskDecorator", lambda function: _checking_overrides(made(function)))


def _checked_and_sealed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Do for a mapped task what the operator does for others: Airflow stores the arguments without creating it."""
    operator = ServiceWorkflowDecoratedOperator
    operator.check_given(arguments)
    hidden = {name: sealed_literals(arguments[name]) for name in operator.sealed_fields if name in arguments}
    return {**arguments, **hidden}


def _checking_overrides(made: Any) -> TaskDecorator:
    kind: Any = type(made)

    class Checking(kind):  # type: ignore[misc]
        def override(self, **kwargs: Any) -> Any:
            return super().override(**_checked_and_sealed(kwargs))

    made.__class__ = Checking  # Airflow always instantiates its own class, and copies keep the class of the original
    return cast("TaskDecorator", made)
