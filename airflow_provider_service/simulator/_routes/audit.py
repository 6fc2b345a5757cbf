"""The security audit: ``/audit``."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._stores.audit import CATEGORIES
from airflow_provider_service.simulator._validation import Array, Body, Enum, Integer, Object

_OPTIONS = Object(optional={"categories": Array(items=Enum(CATEGORIES)), "daysAbandonedWorkflow": Integer()})


@operation(
    "generate_audit",
    "POST",
    "/audit",
    scope="securityAudit:generate",
    family="strict",
    body=Body(optional={"additionalOptions": _OPTIONS}, required_body=False),
)
def generate_audit(call: Call) -> Any:
    options = call.body.get("additionalOptions", {})
    return call.state.audit.generate(options.get("categories", ()), options.get("daysAbandonedWorkflow"))
