"""Compare variables with a declaration. Values are never shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import require
from airflow_provider_service._core.instances.desired_state.changes import DesiredStateChange, DesiredStatePlan, Prune
from airflow_provider_service._core.instances.desired_state.reading import named_values
from airflow_provider_service.client._lookup import create_variable, variables_of
from airflow_provider_service.client._values import type_of

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Variable

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
MAX_VALUE_CHARS = 1000


def require_valid_variables(desired: Any) -> None:
    """Refuse keys and values that the service would refuse.

    :param desired: the values of variables by their keys.
    :raises ServiceInputError: a key is not well formed, or a value is too long.
    """
    values = named_values("variables", desired)
    wrong = [key for key in values if not _KEY.fullmatch(key)]
    require(
        not wrong,
        "the key of a variable has a letter or underscore, followed by up to 49 letters, digits and underscores, not "
        f"{', '.join(map(repr, wrong))}",
    )
    too_long = [key for key, value in values.items() if isinstance(value, str) and len(value) > MAX_VALUE_CHARS]
    require(
        not too_long,
        f"the value of a variable has at most {MAX_VALUE_CHARS} characters: {', '.join(map(repr, too_long))}",
    )


def plan_variables(client: Resources, desired: Any, prune: Prune, *, project_id: str | None) -> DesiredStatePlan:
    """Plan the changes that bring the variables of a project, or of the whole instance, to the declared state.

    :param desired: their values by their keys.
    :param project_id: the project; None for the variables of the whole instance.
    :raises ServiceInputError: a value is not text.
    """
    values = named_values("variables", desired)
    for key, value in values.items():
        require(
            isinstance(value, str),
            f"the value of variable {key!r} must be text, not {type_of(value)}; in YAML, put it in quotes",
        )
    existing = {one.key: one for one in variables_of(client, project_id=project_id)}
    changes = [
        _change(key, value, existing.get(key), project_id)
        for key, value in values.items()
        if key not in existing or existing[key].value != value
    ]
    deleted = prune.deletions(existing.values(), values, lambda client, one: client.variables.delete(one.id))
    return DesiredStatePlan([*changes, *deleted], len(values) - len(changes))


def _change(key: str, value: str, found: Variable | None, project_id: str | None) -> DesiredStateChange:
    def perform(client: Resources) -> None:
        existing = found or create_variable(client, key, value, project_id=project_id)
        if existing is not None:
            client.variables.update(existing.id, key, value)

    return DesiredStateChange("create" if found is None else "update", key, perform=perform)
