"""The options of an upsert, and which of them cannot be combined.

This module loads nothing heavy, because an operator checks its options while Airflow parses the DAG file.
"""

from __future__ import annotations

from typing import Literal, get_args

from airflow_provider_service.client.errors import ServiceInputError

#: What to do if several input rows have the same key.
OnDuplicate = Literal["last", "fail"]
#: What to do if several stored rows have the same key.
OnStoredDuplicates = Literal["remove_copies", "keep_newest", "update_all", "fail"]
#: How rows are changed.
ChangeStrategy = Literal["update", "replace", "auto"]

ON_DUPLICATE = get_args(OnDuplicate)
ON_STORED_DUPLICATES = get_args(OnStoredDuplicates)
CHANGE_STRATEGIES = get_args(ChangeStrategy)

# With the other two, rows that were duplicated by a task that died between inserting and deleting would stay so.
_REPAIRING = ("remove_copies", "keep_newest")


def chosen_strategy(change_strategy: ChangeStrategy, on_stored_duplicates: OnStoredDuplicates) -> ChangeStrategy:
    """The strategy to use, which must be compatible with the policy for stored duplicates.

    :raises ServiceInputError: ``"replace"`` with a policy that does not repair what a killed task leaves behind.
    """
    if on_stored_duplicates in _REPAIRING:
        return change_strategy
    if change_strategy == "replace":
        raise ServiceInputError(
            "change_strategy='replace' needs on_stored_duplicates "
            f"{' or '.join(map(repr, _REPAIRING))}, not {on_stored_duplicates!r}: a task that dies between inserting "
            "and deleting would leave duplicate rows for good; nothing was written"
        )
    return "update"
