"""The provider's description for Airflow is correct, and Airflow accepts it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest

from airflow_provider_service import __version__
from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.client._config import EXTRAS
from airflow_provider_service.get_provider_info import CONNECTION_FIELDS, get_provider_info
from airflow_provider_service.hooks.service import N8nHook, ServiceHook

INFO = get_provider_info()
PACKAGE = Path(importlib.import_module("airflow_provider_service").__file__ or "").parent
DISTRIBUTION = "airflow-provider-service"


def load(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def listed(kind: str) -> set[str]:
    return {module for entry in INFO[kind] for module in entry["python-modules"]}


def test_airflow_accepts_it() -> None:
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())

    jsonschema.validate(INFO, schema)
    names = {entry["integration-name"] for entry in INFO["integrations"]}
    kinds = ("hooks", "operators", "sensors", "triggers")
    assert {entry["integration-name"] for kind in kinds for entry in INFO[kind]} == names


def test_airflow_finds_it() -> None:
    [entry] = [one for one in metadata.entry_points(group="apache_airflow_provider") if one.dist.name == DISTRIBUTION]

    assert entry.load()() == INFO
    assert INFO["package-name"] == DISTRIBUTION
    assert metadata.version(DISTRIBUTION) == __version__


@pytest.mark.parametrize("kind", ["operators", "sensors", "triggers", "hooks"])
def test_every_module_is_listed(kind: str) -> None:
    there = {path.stem for path in (PACKAGE / kind).glob("[!_]*.py")} - {"results", "table_results"}  # only types

    assert listed(kind) == {f"airflow_provider_service.{kind}.{name}" for name in there}
    for module in listed(kind):
        importlib.import_module(module)


def test_every_transfer_is_listed() -> None:
    there = {path.stem for path in (PACKAGE / "transfers").glob("[!_]*.py")}

    assert {one["python-module"] for one in INFO["transfers"]} == {
        f"airflow_provider_service.transfers.{name}" for name in there
    }


def test_people_who_look_for_n8n_find_it() -> None:
    stated = metadata.metadata(DISTRIBUTION)
    first_lines = stated["Description"].split("\n\n")[1]

    assert "n8n" in stated["Summary"]
    assert {"n8n", "airflow", "airflow-provider"} <= set(stated["Keywords"].split(","))
    assert "for n8n" in first_lines
    assert "n8n" in INFO["description"]


def test_every_class_is_there() -> None:
    assert [load(one["hook-class-name"]) for one in INFO["connection-types"]] == [N8nHook, ServiceHook]
    decorators = [entry["class-name"] for entry in INFO["task-decorators"]]
    for path in (*INFO["extra-links"], *INFO["notifications"], *decorators):
        assert load(path).__name__ == path.rpartition(".")[2]


def test_every_link_is_listed() -> None:
    operators = [
        value
        for module in listed("operators") | listed("sensors")
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, type) and value.__name__.startswith("Service") and value.__module__ == module
    ]
    used = {type(link).__name__ for operator in operators for link in getattr(operator, "operator_extra_links", ())}

    assert len(operators) > 25
    assert used <= {path.rpartition(".")[2] for path in INFO["extra-links"]}
    assert all(getattr(operator, "operator_extra_links", ()) for operator in operators)


def test_the_form_has_every_setting_and_its_default() -> None:
    settings = {name: field for name, field in ServiceConfig.model_fields.items() if name in EXTRAS}

    shown = {one["connection-type"]: one["conn-fields"] for one in INFO["connection-types"]}
    assert shown["service"].keys() == settings.keys()
    assert shown["n8n"].keys() == settings.keys() - {"key_header"}
    # A default of the form is always saved, and would win over the version that the base URL names.
    assert CONNECTION_FIELDS["api_version"]["schema"].get("default") is None
    for name in CONNECTION_FIELDS.keys() - {"api_version"}:
        default = settings[name].default
        assert CONNECTION_FIELDS[name]["schema"].get("default") == ("true" if default is True else default)


def is_taken_for_a_secret() -> Callable[[str], bool]:
    """Airflow's own judgement of an extra's name; its location differs between versions."""
    places = ("airflow._shared.secrets_masker", "airflow.sdk.execution_time.secrets_masker")
    for place in (*places, "airflow.utils.log.secrets_masker"):
        with suppress(ImportError):
            return importlib.import_module(place).should_hide_value_for_key  # type: ignore[no-any-return]
    raise AssertionError("this version of Airflow has its masker elsewhere")


def test_airflow_treats_only_the_fields_that_can_hold_a_secret_as_one() -> None:
    is_secret = is_taken_for_a_secret()

    assert is_secret("api_key_header"), "the masker knows no names yet"
    secret = {name for name in CONNECTION_FIELDS if is_secret(name)}
    known = {"bridge_secret", "mcp_api_key"}
    assert known <= secret <= {*known, "proxies"}  # Airflow 3.0 does not know the latter
    assert not any("default" in CONNECTION_FIELDS[name]["schema"] for name in (*known, "proxies"))


@pytest.mark.parametrize("declared", INFO["connection-types"], ids=lambda declared: declared["connection-type"])
def test_the_hook_says_what_the_description_says(declared: dict[str, Any]) -> None:
    hook = load(declared["hook-class-name"])
    behaviour = declared["ui-field-behaviour"]

    assert (hook.conn_type, hook.hook_name) == (declared["connection-type"], declared["hook-name"])
    assert "get_ui_field_behaviour" in vars(hook), "Airflow before 3.2 ignores a method that the class inherits"
    assert hook.get_ui_field_behaviour() == {
        "hidden_fields": behaviour["hidden-fields"],
        "relabeling": behaviour["relabeling"],
        "placeholders": behaviour["placeholders"],
    }
