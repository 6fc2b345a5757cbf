"""The lineage of tasks in OpenLineage's terms, and the headers that tell a workflow which task calls its webhook.

The provider also works without OpenLineage, so the functions import it themselves. They send nothing to the service.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from string import punctuation
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_service.assets.service import TABLES, WORKFLOWS, namespace_of, object_name

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_service._core.waits.outcome import Outcome

    #: The lineage of a task.
    Lineage = OperatorLineage[Any, Any]

log = logging.getLogger(__name__)

PRODUCER = "urn:airflow-provider-service"
#: The headers with the task run, and with the DAG run, as ``namespace/job/run id``.
PARENT_HEADER, ROOT_HEADER = "OpenLineage-Parent-Id", "OpenLineage-Root-Parent-Id"

# Characters that HTTP allows in a header, and that need not be encoded.
_HEADER_CHARS = punctuation.replace("%", "") + " "


def is_installed() -> bool:
    try:
        import_module("airflow.providers.openlineage.extractors")
    except ImportError:
        return False
    return True


def empty() -> Lineage | None:
    """Empty lineage, since OpenLineage warns about None; None if it is not installed."""
    if not is_installed():
        return None
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage()


def table_dataset(
    base_url: str, table_id: str, *, is_output: bool, types: Mapping[str, str] | None = None, written: int | None = None
) -> Any:
    """The dataset of a data table, with the types of its columns and the number of rows written, if known."""
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import datasource_dataset, output_statistics_output_dataset, schema_dataset

    namespace = namespace_of(base_url)
    facets: dict[str, Any] = {
        "dataSource": datasource_dataset.DatasourceDatasetFacet(name=namespace, uri=base_url, producer=PRODUCER)
    }
    if types is not None:
        fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in types.items()]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER)
    name = object_name(TABLES, table_id)
    if not is_output:
        return InputDataset(namespace=namespace, name=name, facets=facets)
    output_facets: dict[str, Any] = {}
    if written is not None:
        output_facets["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=written, producer=PRODUCER
        )
    return OutputDataset(namespace=namespace, name=name, facets=facets, outputFacets=output_facets)


def of_file(address: str, *, is_output: bool) -> Lineage:
    """The lineage of a task that reads or writes a file; a connection that its address names is left out."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    scheme, _, rest = address.partition("://") if "://" in address else ("", "", address)
    if scheme in ("", "file"):
        namespace, name = "file", str(Path(rest).absolute())
    else:
        if scheme in ("http", "https"):  # a query can hold a signature; in other addresses, ? and # belong to the name
            rest = re.split(r"[?#]", rest, maxsplit=1)[0]
        place, _, name = rest.partition("/")
        namespace, name = f"{scheme}://{place.rpartition('@')[2]}", name.strip("/")
    if is_output:
        return OperatorLineage(outputs=[OutputDataset(namespace=namespace, name=name)])
    return OperatorLineage(inputs=[InputDataset(namespace=namespace, name=name)])


def of_query(hook: Any, sql: str, conn_id: str) -> Lineage | None:
    """The tables that a statement reads and writes; None if the hook does not say which database it is for."""
    from airflow.providers.common.compat.openlineage.utils.sql import get_openlineage_facets_with_sql

    return get_openlineage_facets_with_sql(
        hook=hook, sql=sql, conn_id=conn_id, database=getattr(hook, "database", None)
    )


def of_sql_table(hook: Any, table: str, conn_id: str) -> Lineage | None:
    from airflow.providers.openlineage.extractors import OperatorLineage

    # The SQL parser knows how each database names its tables.
    lineage = of_query(hook, f"INSERT INTO {table} SELECT 1", conn_id)
    return None if lineage is None else OperatorLineage(outputs=lineage.outputs)


def of_execution(task_instance: Any, base_url: str, execution_id: str, outcome: Outcome | None) -> Lineage:
    """The lineage of a task that has started an execution. An execution that has ended is emitted as a run, too."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    if outcome is not None:
        _emit_run(task_instance, base_url, outcome)
    return OperatorLineage(run_facets=_external_facet(base_url, execution_id))


def _external_facet(base_url: str, execution_id: str) -> dict[str, Any]:
    from openlineage.client.facet_v2 import external_query_run

    facet = external_query_run.ExternalQueryRunFacet(
        externalQueryId=execution_id, source=namespace_of(base_url), producer=PRODUCER
    )
    return {"externalQuery": facet}


def _emit_run(task_instance: Any, base_url: str, outcome: Outcome) -> None:
    # Only an execution that is known to have ended is emitted; the parent of its run is the run of the task.
    if not (outcome.execution_id and outcome.workflow_id and outcome.status and outcome.started_at):
        return
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import job_type_job
    from openlineage.client.uuid import generate_static_uuid

    from airflow_provider_service.client._models import parse_moment

    namespace = namespace_of(base_url)
    identity = f"{namespace}/executions/{outcome.execution_id}".encode()
    run_id = generate_static_uuid(instant=parse_moment(outcome.started_at), data=identity)
    facets = {**_external_facet(base_url, outcome.execution_id), "parent": _parent_facet(task_instance)}
    run = Run(runId=str(run_id), facets=facets)
    job_type = job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration="N8N", jobType="WORKFLOW", producer=PRODUCER
    )
    job = Job(namespace=namespace, name=object_name(WORKFLOWS, outcome.workflow_id), facets={"jobType": job_type})
    ends = {"success": RunState.COMPLETE, "canceled": RunState.ABORT}
    adapter = get_openlineage_listener().adapter
    for state, moment in (
        (RunState.START, outcome.started_at),
        (ends.get(outcome.status, RunState.FAIL), outcome.stopped_at or outcome.started_at),
    ):
        adapter.emit(RunEvent(eventType=state, eventTime=moment, run=run, job=job, producer=PRODUCER))


def _parent_facet(task_instance: Any) -> Any:
    from airflow.providers.openlineage.plugins import macros
    from openlineage.client.facet_v2 import parent_run

    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=macros.lineage_run_id(task_instance)),
        job=parent_run.Job(namespace=macros.lineage_job_namespace(), name=macros.lineage_job_name(task_instance)),
        root=parent_run.Root(
            run=parent_run.RootRun(runId=macros.lineage_root_run_id(task_instance)),
            job=parent_run.RootJob(
                namespace=macros.lineage_root_job_namespace(task_instance),
                name=macros.lineage_root_job_name(task_instance),
            ),
        ),
        producer=PRODUCER,
    )


def parent_headers(task_instance: Any) -> dict[str, str]:
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
    return {name: quote(value, safe=_HEADER_CHARS) for name, value in parents.items()}
