"""The examples of the hook's page; tests/docs/test_documentation.py runs them."""

from airflow_provider_service.hooks.service import ServiceHook


def count_failures(workflow_id: str) -> int:
    with ServiceHook("service_default") as service:
        return sum(1 for _ in service.executions.list(workflow_id=workflow_id, status="error"))


def export_names(data_table_id: str) -> list[str]:
    with ServiceHook() as service:
        rows = service.data_table_rows.list(data_table_id, sort_by="name:asc")  # streams, a page in memory at a time
        return [row["name"] for row in rows]


def any_endpoint(workflow_id: str) -> list[str]:
    with ServiceHook() as service:
        return [tag["name"] for tag in service.request("GET", "/workflows/{}/tags", workflow_id)]


def sums_of(execution_id: str) -> list[int]:
    with ServiceHook() as service:
        return [item["sum"] for item in service.executions.output(execution_id, node="Sum")]


def workflows_with(credential_id: str) -> set[str]:
    with ServiceHook() as service:
        return {
            workflow.name
            for workflow in service.workflows.list()
            for version in (workflow, workflow.active_version)  # the draft, and what runs
            for node in (version and version.nodes) or ()
            for used in (node.get("credentials") or {}).values()
            if used.get("id") == credential_id
        }


def workflow_id_of(name: str) -> str:
    with ServiceHook() as service:
        # The service finds other upper and lower case as well.
        [workflow] = [one for one in service.workflows.list(name=name) if one.name == name and not one.is_archived]
        return workflow.id


def hand_over(email: str, destination_project_id: str) -> None:
    with ServiceHook() as service:
        user = service.users.get(email)
        ending = f"<{user.email}>"  # everybody's personal project is named "First Last <address>"
        for workflow in list(service.workflows.list()):
            owners = [one for one in service.workflows.get(workflow.id).shared or () if one["role"] == "workflow:owner"]
            if owners and owners[0]["project"]["name"].endswith(ending):
                service.workflows.transfer(workflow.id, destination_project_id)
        for credential in list(service.credentials.list()):
            owners = [one for one in credential.shared or () if one["role"] == "credential:owner"]
            if owners and owners[0]["name"].endswith(ending):
                service.credentials.transfer(credential.id, destination_project_id)
        service.users.delete(user.id)  # refused if the user still owns any
