"""Compare tags with a declaration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import as_list
from airflow_provider_service._core.instances.desired_state.changes import DesiredStateChange, DesiredStatePlan, Prune
from airflow_provider_service._core.instances.desired_state.reading import names_in, require_short
from airflow_provider_service._core.runs.bridge.definition import TAG as BRIDGE_TAG
from airflow_provider_service.client._lookup import create_tag
from airflow_provider_service.client.resources._tags import MAX_TAG_CHARS

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources


def plan_tags(client: Resources, desired: Any, prune: Prune) -> DesiredStatePlan:
    """Plan the changes that bring the tags to the declared state.

    :param desired: their names.
    :raises ServiceInputError: a name is not valid for a tag, or occurs twice.
    """
    names = names_in("tags", as_list("tags", desired))
    require_short("tag", names, MAX_TAG_CHARS)
    existing = list(client.tags.list())
    known = {tag.name for tag in existing}
    missing = [name for name in names if name not in known]
    created = [DesiredStateChange("create", name, perform=partial(create_tag, name=name)) for name in missing]
    # Tasks find the bridge by its tag, which a prefix such as "airflow-" would take as well.
    prunable = [tag for tag in existing if tag.name != BRIDGE_TAG]
    deleted = prune.deletions(prunable, names, lambda client, tag: client.tags.delete(tag.id))
    return DesiredStatePlan([*created, *deleted], len(names) - len(missing))
