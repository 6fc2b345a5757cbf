"""A task that runs a workflow with the hook, as a function that is decorated with ``@task`` does."""

from __future__ import annotations

from functools import cached_property
from inspect import signature
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_service.hooks.service import ServiceHook

ARGUMENTS = frozenset(signature(ServiceHook.run_workflow).parameters) - {"self"}


class HookTask(BaseOperator):
    """Calls ``hook.run_workflow`` with a key, unless another one is given. It does not defer, whatever is said."""

    def __init__(self, *, service_conn_id: str = "service_default", deferrable: bool = False, **kwargs: Any) -> None:
        super().__init__(**{name: value for name, value in kwargs.items() if name not in ARGUMENTS})
        self.service_conn_id = service_conn_id
        self.arguments = {"run_key": "run", **{name: kwargs[name] for name in ARGUMENTS & kwargs.keys()}}

    @cached_property
    def hook(self) -> ServiceHook:
        return ServiceHook(self.service_conn_id)

    def execute(self, context: Any) -> Any:
        return self.hook.run_workflow(**self.arguments, context=context)
