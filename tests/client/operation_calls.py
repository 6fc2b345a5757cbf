"""The table of calls: one for each operation, with all arguments and the expected request."""

from __future__ import annotations

from .calling import Call
from .calls_data import CREDENTIALS_AND_TAGS, DATA_TABLES
from .calls_instance import DEPLOYMENT, INSIGHT
from .calls_people import FOLDERS_AND_VARIABLES, PEOPLE
from .calls_workflows import EXECUTIONS, WORKFLOWS

CALLS: list[Call] = [
    *WORKFLOWS,
    *EXECUTIONS,
    *CREDENTIALS_AND_TAGS,
    *DATA_TABLES,
    *PEOPLE,
    *FOLDERS_AND_VARIABLES,
    *DEPLOYMENT,
    *INSIGHT,
]
