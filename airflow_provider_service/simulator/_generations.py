"""Which operations and parameters older versions of the service lack, by their published contracts."""

from __future__ import annotations

#: The version that is simulated unless another is set.
NEWEST = "2.41.1"

_SINCE = {
    "2.3": "update_credential",
    "2.7": (
        "list_data_tables create_data_table get_data_table update_data_table delete_data_table list_data_table_rows "
        "insert_data_table_rows update_data_table_rows upsert_data_table_rows delete_data_table_rows"
    ),
    "2.8": "list_credentials list_project_users",
    "2.10": "stop_execution stop_many_executions list_execution_tags update_execution_tags",
    "2.14": "discover",
    "2.15": "archive_workflow unarchive_workflow",
    "2.16": (
        "list_community_packages install_community_package update_community_package uninstall_community_package "
        "list_executions?redactExecutionData get_execution?redactExecutionData"
    ),
    "2.17": "get_insights_summary list_users?offset",
    "2.20": (
        "get_credential test_credential list_data_table_columns create_data_table_column update_data_table_column "
        "delete_data_table_column list_folders create_folder get_folder update_folder delete_folder"
    ),
    "2.30": "clear_data_table_rows list_executions?ignoreDataSizeLimit get_execution?ignoreDataSizeLimit",
    "2.33": "publish_workflow unpublish_workflow list_workflow_history",
    "2.35": "update_workflow?publishIfActive",
    "2.36": "list_workflows?offset",
    "2.37": "list_executions?startedAfter list_executions?startedBefore",
    "2.39": "get_source_control_status push_source_control get_workflow_version",
}
_BY_NAME = {name: version for version, names in _SINCE.items() for name in names.split()}


def offers(version: str, operation: str, parameter: str | None = None) -> bool:
    """Whether a version has an operation, or a parameter of its query.

    :param version: such as ``"2.20.12"``
    """
    since = _BY_NAME.get(operation if parameter is None else f"{operation}?{parameter}", "0.0")
    return is_at_least(version, since)


def is_at_least(version: str, other: str) -> bool:
    """Whether a version such as ``"2.20.12"`` is at least as new as another one, such as ``"2.20"``."""
    return _numbers(version) >= _numbers(other)


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
