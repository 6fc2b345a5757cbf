"""Export and import of workflow packages."""

from __future__ import annotations

import io
import tarfile

import pytest

from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceInvalidRequestError,
)

from .expecting import NO_ID, refused
from .target import Target
from .workbench import Workbench


@pytest.mark.covers("export_n8n_package", needs=("create_workflow",))
def test_an_export_is_a_gzipped_tar(service: Target, bench: Workbench) -> None:
    workflow = bench.create()

    package = service.client.packages.export(workflow_ids=[workflow.id])

    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as archive:
        names = archive.getnames()
    assert "manifest.json" in names
    assert any(name.startswith("workflows/") for name in names)


@pytest.mark.covers("export_n8n_package", "import_n8n_package", needs=("create_workflow",))
def test_a_workflow_that_is_gone_is_imported_under_a_new_id(service: Target, bench: Workbench) -> None:
    workflow = bench.create()
    package = service.client.packages.export(workflow_ids=[workflow.id])
    bench.remove(workflow.id)

    (imported,) = service.client.packages.import_(package, "fail", workflow_id_policy="new").workflows

    copy = service.client.workflows.get(imported.local_id)
    bench.remove(imported.local_id)
    assert (imported.source_workflow_id, imported.status) == (workflow.id, "created")
    assert (copy.name, copy.active) == (workflow.name, False)
    assert copy.id != workflow.id


@pytest.mark.covers("import_n8n_package", needs=("create_workflow", "export_n8n_package"))
def test_a_workflow_that_is_there_gets_a_new_version(service: Target, bench: Workbench) -> None:
    workflow = bench.create()
    package = service.client.packages.export(workflow_ids=[workflow.id])

    (imported,) = service.client.packages.import_(package, "new-version").workflows

    assert (imported.local_id, imported.status) == (workflow.id, "updated")


@pytest.mark.covers("import_n8n_package", needs=("create_workflow", "export_n8n_package"))
def test_a_workflow_that_is_there_can_forbid_the_import(service: Target, bench: Workbench) -> None:
    workflow = bench.create()
    package = service.client.packages.export(workflow_ids=[workflow.id])

    with pytest.raises(ServiceConflictError):
        service.client.packages.import_(package, "fail")
    (skipped,) = service.client.packages.import_(package, "skip").workflows
    assert (skipped.local_id, skipped.status) == (workflow.id, "skipped")


@pytest.mark.covers("export_n8n_package")
def test_an_unknown_workflow_is_not_exported(service: Target) -> None:
    message = "1 workflow(s) not found or not accessible. Export aborted."
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.packages.export(workflow_ids=[NO_ID])


@pytest.mark.covers("export_n8n_package")
def test_an_export_that_does_not_fit_is_refused(service: Target) -> None:
    for body in ({"foo": 1}, {"workflowIds": "x"}, {"workflowVersionPolicy": "newest"}):
        with pytest.raises(ServiceInvalidRequestError):
            service.client.request("POST", "/n8n-packages/export", body=body)


@pytest.mark.covers("import_n8n_package")
def test_an_import_that_does_not_fit_is_refused(service: Target) -> None:
    with pytest.raises(ServiceInvalidRequestError):
        service.client.packages.import_(b"no archive", "fail")
    assert service.raw("POST", "/n8n-packages/import", json={}).status_code == 415
