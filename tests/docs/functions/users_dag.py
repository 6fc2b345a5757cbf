"""The guide's example of users and projects; tests/docs/test_task_pages.py runs it."""

from airflow.sdk import DAG

from airflow_provider_service.operators.desired_state import ServiceEnsureProjectsOperator
from airflow_provider_service.operators.users import ServiceInviteUsersOperator

with DAG("users_and_projects", schedule=None) as dag:
    invite = ServiceInviteUsersOperator(
        task_id="invite",
        users=["ana@example.com", {"email": "bo@example.com", "role": "global:admin"}],
    )

    # An invited user can become a member at once.
    members = ServiceEnsureProjectsOperator(
        task_id="members",
        projects={"Sales": {"ana@example.com": "project:editor", "bo@example.com": "project:admin"}},
    )

    invite >> members
