"""Read the address of an execution's page, which the module ``service`` builds; only the pages in Airflow need this."""

from __future__ import annotations

import re
from typing import NamedTuple

from airflow_provider_service.client._constraints import is_plain_id

#: A longer text is not an address.
_MAX_CHARS = 2_000
_EXECUTION_ADDRESS = r"(https?://.+?)/workflow/([^/?#]+)/executions/([^/?#]+)"


class ExecutionAddress(NamedTuple):
    """The parts of the address of an execution's page."""

    base_url: str
    workflow_id: str
    execution_id: str


def read_execution_url(url: object) -> ExecutionAddress | None:
    """Read an address that ``execution_url`` of the module ``service`` returned; None for any other text."""
    if not isinstance(url, str) or len(url) > _MAX_CHARS:
        return None
    found = re.fullmatch(_EXECUTION_ADDRESS, url)
    if not found or not all(map(is_plain_id, found.group(2, 3))):
        return None
    return ExecutionAddress(found[1], found[2], found[3])
