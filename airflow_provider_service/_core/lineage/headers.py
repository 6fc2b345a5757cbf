"""What the call of a webhook tells the workflow about the task that makes it."""

from __future__ import annotations

import logging
import sys
from string import punctuation
from typing import Any
from urllib.parse import quote

log = logging.getLogger(__name__)

#: The task run, and the DAG run, as ``namespace/job/run id``.
PARENT_HEADER, ROOT_HEADER = "OpenLineage-Parent-Id", "OpenLineage-Root-Parent-Id"

# What HTTP allows in a header and nobody has to decode.
_PLAIN = punctuation.replace("%", "") + " "


def parent_headers(task_instance: Any) -> dict[str, str]:
    """The headers that name what has started a workflow: the trace and the run of OpenLineage, if in use."""
    return {**_trace_headers(), **_openlineage_headers(task_instance)}


def _trace_headers() -> dict[str, str]:
    """The W3C trace context of the task's span; none unless Airflow traces tasks."""
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
        log.warning("The call does not carry its parent in OpenLineage: %s", error)
        return {}
    return {name: quote(value, safe=_PLAIN) for name, value in parents.items()}
