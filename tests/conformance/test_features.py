"""Each feature works where the target has what it needs, and is refused with that everywhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from tests.client.contract import CONTRACT
from tests.operators.test_every_operator import OPERATORS
from tests.package.test_copies import sensors

from .features.kit import DATABASE, FEATURES, Feature, Kit
from .features.table import column_of
from .outcomes import PROPERTY
from .refusals import version_of
from .tables import Tables
from .target import Target
from .workbench import Workbench


@pytest.fixture
def kit(service: Target, bench: Workbench, tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """The service behind the default connection, with its MCP endpoint switched on."""
    service.switch_mcp(True)
    extra = {"mcp_api_key": service.mcp_api_key, "key_header": service.key_header}
    fields = {"conn_type": "service", "host": service.base_url, "password": service.api_key, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(fields))
    database = {"conn_type": "sqlite", "host": str(tmp_path / "features.sqlite")}
    monkeypatch.setenv(f"AIRFLOW_CONN_{DATABASE.upper()}", json.dumps(database))
    config = ServiceConfig(base_url=service.base_url, api_key=service.api_key, **extra)
    return Kit(service, bench, tables, config, tmp_path)


def lacking(service: Target, feature: Feature) -> list[str]:
    """What the target lacks of what a feature needs."""
    return [one for one in feature.needs if (not service.offers(one) if one in CONTRACT else service.differs(one))]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.key)
def test_a_feature_works_or_says_what_the_server_lacks(
    feature: Feature, kit: Kit, request: pytest.FixtureRequest
) -> None:
    record: dict[str, Any] = {
        "column": column_of(kit.service.name),
        "operations": (feature.key,),
        "differs": {},
        "instead": None,
    }
    request.node.user_properties.append((PROPERTY, record))
    missing = lacking(kit.service, feature)
    gated = [one for one in feature.needs if kit.service.is_gated(one)]
    if missing:
        record["instead"] = ("lacking", ", ".join(missing))
        versions = {f"n8n offers it from {version_of(one)} on" for one in missing if one in CONTRACT}
        words = refusal(feature, kit)
        assert any(text in words for text in versions or {"the server's MCP endpoint is an older one"}), words
    elif gated:
        record["instead"] = ("gated", ", ".join(gated))
        assert "the server's plan does not include this" in refusal(feature, kit)
    elif why := feature.check(kit):
        record["differs"] = {feature.key: [why]}


def refusal(feature: Feature, kit: Kit) -> str:
    """The message of the exception with which a feature ends."""
    with pytest.raises((AirflowFailException, ServiceError)) as caught:
        feature.check(kit)
    return str(caught.value)


def test_every_operator_sensor_and_trigger_is_a_feature() -> None:
    classes = {*OPERATORS, *sensors(), ServiceExecutionEventTrigger, ServiceNotifier}
    named = [feature.key for feature in FEATURES]
    assert {one.__name__ for one in classes} <= set(named)
    assert len(named) == len(set(named))
