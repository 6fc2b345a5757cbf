"""Calls about deployment, community packages and insight."""

from __future__ import annotations

from airflow_provider_service.client import errors

from . import samples
from .calling import (
    PACKAGE,
    PACKAGE_,
    TEXT_WHEN,
    TEXT_WHEN_ENCODED,
    WHEN,
    WHEN_ENCODED,
    Call,
    conflict,
    invalid,
    not_found,
)

NOT_INSTALLED = "This package is not installed - you must install it first"
NOT_CONNECTED = "Source Control is not connected to a repository"

DEPLOYMENT = [
    Call(
        "get_source_control_status",
        "source_control.get_status",
        ("push",),
        "GET /source-control/status?direction=push",
        {"data": [samples.FILE]},
        invalid(NOT_CONNECTED),
    ),
    Call(
        "push_source_control",
        "source_control.push",
        ("Release", [{"id": "w", "type": "workflow"}]),
        "POST /source-control/push",
        {"data": [samples.FILE]},
        conflict("Unresolved conflicts"),
        {"force": True, "timeout": 60.0},
        {"commitMessage": "Release", "fileNames": [{"id": "w", "type": "workflow"}], "force": True},
    ),
    Call(
        "pull_source_control",
        "source_control.pull",
        (),
        "POST /source-control/pull",
        [samples.FILE],
        invalid(NOT_CONNECTED),
        {"force": False, "auto_publish": "published", "timeout": 60.0},
        {"force": False, "autoPublish": "published"},
    ),
    Call(
        "list_community_packages",
        "community_packages.list",
        (),
        "GET /community-packages",
        [samples.COMMUNITY_PACKAGE],
        invalid("no"),
    ),
    Call(
        "install_community_package",
        "community_packages.install",
        (PACKAGE,),
        "POST /community-packages",
        samples.COMMUNITY_PACKAGE,
        invalid(f"Package {PACKAGE} is not vetted for installation"),
        {"version": "1.2.3", "verify": True, "timeout": 60.0},
        {"name": PACKAGE, "version": "1.2.3", "verify": True},
    ),
    Call(
        "update_community_package",
        "community_packages.update",
        (PACKAGE,),
        f"PATCH /community-packages/{PACKAGE_}",
        samples.COMMUNITY_PACKAGE,
        not_found(NOT_INSTALLED),
        {"version": "1.3.0", "verify": False, "timeout": 60.0},
        {"version": "1.3.0", "verify": False},
    ),
    Call(
        "uninstall_community_package",
        "community_packages.uninstall",
        (PACKAGE,),
        f"DELETE /community-packages/{PACKAGE_}",
        None,
        not_found(NOT_INSTALLED),
    ),
]

INSIGHT = [
    Call(
        "get_insights_summary",
        "insights.get_summary",
        (),
        f"GET /insights/summary?startDate={WHEN_ENCODED}&endDate={TEXT_WHEN_ENCODED}&projectId=p%2C1",
        samples.INSIGHTS,
        (
            403,
            "The selected date range exceeds the maximum history allowed by your license",
            errors.ServiceNotLicensedError,
        ),
        {"start_date": WHEN, "end_date": TEXT_WHEN, "project_id": "p,1"},
    ),
    Call(
        "generate_audit",
        "audit.generate",
        (),
        "POST /audit",
        samples.AUDIT,
        (500, "Internal server error", errors.ServiceServerError),
        {"categories": ["nodes"], "days_abandoned_workflow": 30, "timeout": 60.0},
        {"additionalOptions": {"categories": ["nodes"], "daysAbandonedWorkflow": 30}},
    ),
    Call(
        "discover",
        "discovery.discover",
        (),
        "GET /discover?include=schemas&resource=tags&operation=list",
        samples.CAPABILITIES,
        (401, "unauthorized", errors.ServiceUnauthorizedError),
        {"include": "schemas", "resource": "tags", "operation": "list"},
    ),
]
