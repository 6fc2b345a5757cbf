"""Successful calls of every operation, so that their requests and answers can be judged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from .expecting import unique
from .tables import Tables, where
from .target import Target
from .workbench import Workbench, stop_and_error, wait, webhook

Story = Callable[[Target], None]


def workflows(service: Target) -> None:
    client, bench = service.client.workflows, Workbench(service)
    made = bench.create(webhook(unique()))
    client.get(made.id, exclude_pinned_data=True)
    client.update(made.id, unique(), made.nodes or [], made.connections or {}, {"executionTimeout": 60})
    client.publish(made.id, name="first", description="of its kind")
    client.unpublish(made.id)
    client.activate(made.id)
    list(client.list(active=True, exclude_pinned_data=True, limit=10))
    (version, *_) = client.list_history(made.id)
    client.get_version(made.id, version.version_id)
    client.get_version_deprecated(made.id, version.version_id)
    client.deactivate(made.id)
    client.archive(made.id)
    client.unarchive(made.id)
    bench.clean()


def workflow_tags(service: Target) -> None:
    tags, client, bench = service.client.tags, service.client.workflows, Workbench(service)
    made, tag = bench.create(), tags.create(unique())
    client.update_tags(made.id, [tag.id])
    client.list_tags(made.id)
    list(client.list(tags=[tag.name]))
    tags.get(tag.id)
    tags.update(tag.id, unique())
    list(tags.list(limit=10))
    bench.clean()
    tags.delete(tag.id)


def executions(service: Target) -> None:
    client, bench = service.client.executions, Workbench(service)
    failing = bench.publish(webhook(unique()), stop_and_error())
    failed = bench.start(failing)
    bench.finished(failed)
    client.get(failed, include_data=True)
    list(client.list(workflow_id=failing.id, status="error", include_data=True))
    client.list_tags(failed)
    client.update_tags(failed, [])
    client.delete(client.retry(failed, load_workflow=True).id)
    resting = bench.publish(webhook(unique()), wait(100))
    bench.reaches(bench.start(resting), "waiting")
    (waiting,) = client.list(workflow_id=resting.id)
    client.stop(waiting.id)
    bench.start(resting)
    client.stop_many(["queued", "running", "waiting"], workflow_id=resting.id)
    bench.clean()


def credentials(service: Target) -> None:
    client = service.client.credentials
    client.get_schema("httpHeaderAuth")
    made = client.create(unique(), "httpHeaderAuth", {"name": "X", "value": "s"})
    client.get(made.id)
    client.update(made.id, name=unique(), data={"name": "Y"}, is_partial_data=True)
    client.test(made.id)
    list(client.list(limit=10))
    client.delete(made.id)


def transfers_and_users(service: Target) -> None:
    users, bench = service.client.users, Workbench(service)
    (invitation,) = users.create([{"email": f"{unique()}@example.com", "role": "global:member"}])
    user_id = str(invitation.user.id)
    elsewhere = service.personal_project(invitation.user.email)
    credential = service.client.credentials.create(unique(), "httpHeaderAuth", {"name": "X", "value": "s"})
    service.client.credentials.transfer(credential.id, elsewhere)
    service.client.workflows.transfer(bench.create().id, elsewhere)
    users.get(user_id, include_role=True)
    list(users.list(include_role=True, limit=10))
    users.delete(user_id, delete_workflows=True)


def data_tables(service: Target) -> None:
    client, tables = service.client, Tables(service)
    table_id = tables.create().id
    client.data_tables.get(table_id)
    client.data_tables.update(table_id, unique())
    list(client.data_tables.list(filter={"id": table_id}, sort_by="name:asc"))
    column = client.data_table_columns.create(table_id, "more", "date", index=0)
    client.data_table_columns.update(table_id, column.id, name="most", index=1)
    client.data_table_columns.list(table_id)
    client.data_table_columns.delete(table_id, column.id)
    _rows(service, table_id)
    client.data_tables.delete(table_id)


def _rows(service: Target, table_id: str) -> None:
    rows, first = service.client.data_table_rows, where(("id", "eq", 1))
    for return_type in ("count", "id", "all"):
        rows.insert(
            table_id, [{"text": "a", "number": 1.5, "flag": True, "day": "2026-01-02"}, {}], return_type=return_type
        )
    list(rows.list(table_id, filter=first, sort_by="id:asc", search="a", limit=2))
    for options in ({"dry_run": True}, {"return_data": True}, {}):
        rows.update(table_id, first, {"number": 2}, **options)
        rows.upsert(table_id, first, {"number": 3}, **options)
        rows.delete(table_id, where(("id", "gt", 4)), **options)
    rows.upsert(table_id, where(("id", "eq", 99)), {"number": 4}, dry_run=True)
    rows.clear(table_id)


def instance(service: Target) -> None:
    end = datetime.now(UTC)
    service.client.insights.get_summary(start_date=end - timedelta(days=1), end_date=end)
    service.client.audit.generate(categories=["credentials", "instance"], days_abandoned_workflow=1)
    service.client.audit.generate(categories=["database"])
    service.client.discovery.discover(include="schemas")
    service.client.community_packages.list()


def projects(service: Target) -> None:
    client, folders = service.client.projects, service.client.folders
    made = client.create(unique())
    client.update(made.id, unique())
    list(client.list(limit=10))
    (invitation,) = service.client.users.create([{"email": f"{unique()}@example.com"}])
    user_id = str(invitation.user.id)
    service.client.users.change_role(user_id, "global:admin")
    client.add_users(made.id, [{"userId": user_id, "role": "project:viewer"}])
    client.change_user_role(made.id, user_id, "project:editor")
    list(client.list_users(made.id))
    client.delete_user(made.id, user_id)
    service.client.users.delete(user_id, delete_workflows=True)
    folder, target = folders.create(made.id, "In"), folders.create(made.id, "Out")
    folders.update(made.id, folder.id, name="Inner", parent_folder_id=target.id)
    folders.get(made.id, target.id)
    list(folders.list(made.id, sort_by="name:asc", select=["id", "name"]))
    folders.delete(made.id, folder.id, transfer_to_folder_id=target.id)
    client.delete(made.id)


def variables(service: Target) -> None:
    client, key = service.client.variables, unique("v")
    client.create(key, "1")
    made = next(one for one in client.list() if one.key == key)
    client.update(made.id, key, "2")
    client.delete(made.id)


def source_control(service: Target) -> None:
    client, bench = service.client.source_control, Workbench(service)
    made = bench.create()
    client.get_status("pull")
    client.pull(force=True, auto_publish="none")
    client.push("Release", [{"id": made.id, "type": "workflow"}], force=True)
    bench.clean()


def community_packages(service: Target) -> None:
    client, name = service.client.community_packages, "n8n-nodes-example"
    client.install(name, version="0.9.0", verify=True)
    client.list()
    client.update(name, version="1.0.0")
    client.uninstall(name)


#: What any server of this generation can be asked.
FREE: tuple[Story, ...] = (
    workflows,
    workflow_tags,
    executions,
    credentials,
    transfers_and_users,
    data_tables,
    instance,
)
#: What needs a license, or packages that can be installed.
SIMULATED: tuple[Story, ...] = (projects, variables, source_control, community_packages)
