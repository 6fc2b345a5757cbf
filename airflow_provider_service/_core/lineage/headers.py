"""Headers by which the call of a webhook tells the workflow which task makes it."""

from __future__ import annotations

import logging
import sys
from string import punctuation
from typing import Any
from urllib.parse import quote

log = logging.getLogger(__name__)

#: The task run, and the DAG run, as ``namespace/job/run id``.
PARENT_HEADER, ROOT_HEADER = "OpenLineage-Parent-Id", "OpenLineage-Root-Parent-Id"

# Characters that HTTP allows in a header, and that need not be encoded.
_PLAIN = punctuation.replace("%", "") + " "


def parent_headers(task_instance: Any) -> dict[str, str]:
    """Headers that name the task that starts a workflow: its trace and its OpenLineage run, if in use."""
    return {**_trace_headers(), **_openlineage_headers(task_instance)}


def _trace_headers() -> dict[str, str]:
    """The W3C trace context of the task's span; empty unless Airflow traces tasks."""
    if "opentelemetry.trace" not in sys.modules:  # then there is no span
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers


def _openlineage_headers(task_instance: Any) -> dict[str, str]:
    try:
        from airflow.providers.openlineage import conf

        if conf.is_disabled():
            return {}
        from airflow.providers.openlineage.plugins import macros

        parents = {
            PARENT_HEADER: macros.lineage_parent_id(task_instance),
            ROOT_HEADER: macros.lineage_root_parent_id(task_instance),
        }
    except ImportError:
        return {}
    except Exception as error:  # noqa: BLE001 - a workflow runs whatever OpenLineage does
        log.warning("The call does not name its parent run in OpenLineage: %s", error)
        return {}
    return {name: quote(value, safe=_PLAIN) for name, value in parents.items()}
