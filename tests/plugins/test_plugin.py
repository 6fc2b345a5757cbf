"""The plugin itself: Airflow finds it, and on versions that do not show its pages it adds nothing."""

from __future__ import annotations

import json
from importlib import metadata

import pytest
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS, AIRFLOW_V_3_1_PLUS

from airflow_provider_service.plugins.service import URL_PREFIX, ServicePlugin, address
from tests import airflow_features


def test_airflow_finds_it():
    [entry] = [one for one in metadata.entry_points(group="airflow.plugins") if one.name == "service"]

    assert entry.load() is ServicePlugin


def test_pages_are_added_only_where_airflow_shows_them():
    assert bool(ServicePlugin.external_views) is bool(ServicePlugin.fastapi_apps) is AIRFLOW_V_3_1_PLUS


@airflow_features.pages
def test_menus_and_tabs_say_n8n_at_the_addresses_that_people_have_saved():
    named = {one["url_route"]: (one["name"], one["destination"]) for one in ServicePlugin.external_views}
    assert named == {
        "service_execution": ("n8n execution", "task_instance"),
        "service_executions": ("n8n executions", "nav"),
        "service_executions_of_dag": ("n8n executions", "dag"),
        "service_executions_of_run": ("n8n executions", "dag_run"),
        "service_connections": ("n8n connections", "nav"),
    }


def test_the_tab_is_below_the_path_of_this_airflow(monkeypatch):
    assert address("/x") == f"{URL_PREFIX}/x"
    section = "API" if AIRFLOW_V_3_0_PLUS else "WEBSERVER"
    monkeypatch.setenv(f"AIRFLOW__{section}__BASE_URL", "https://airflow.example.com/team/a/")
    assert address("/x") == f"/team/a{URL_PREFIX}/x"


def test_airflow_lists_it_with_what_this_version_shows(capsys):
    from airflow.cli.cli_parser import get_parser

    arguments = get_parser().parse_args(["plugins", "--output", "json"])
    arguments.func(arguments)

    listed = json.loads(capsys.readouterr().out.splitlines()[-1])
    [plugin] = [one for one in listed if one["name"] == "service"]
    assert len(plugin.get("fastapi_apps", [])) == (1 if AIRFLOW_V_3_1_PLUS else 0)


@airflow_features.commands_of_providers
def test_airflow_has_the_command(simulator, capsys):
    from airflow.cli.cli_parser import get_parser

    arguments = get_parser().parse_args(["service", "doctor"])
    with pytest.raises(SystemExit) as ended:
        arguments.func(arguments)

    assert ended.value.code == 0
    assert f"ok    service: {simulator.base_url} answers" in capsys.readouterr().out
