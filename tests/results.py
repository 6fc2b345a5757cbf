"""Whether what a task returns is what the annotation of its operator says."""

from __future__ import annotations

from typing import Any, NotRequired, get_origin, get_type_hints, is_typeddict

from airflow_provider_service.operators import results, table_results


def result_type(operator: type[Any]) -> Any:
    """The type that the operator names as its result; None if it may be anything."""
    name = operator.perform.__annotations__["return"]
    return getattr(results, name, None) or getattr(table_results, name, None)


def check_result(operator: type[Any], result: Any) -> None:
    """See that a result has exactly the keys of its type; a key that is not required may be absent."""
    kind = result_type(operator)
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        required = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
        assert required <= result.keys() <= hints.keys(), kind
