"""``docs/conformance.md`` lists the published operations without a method of their own, and the hook reaches them."""

from __future__ import annotations

import json

import pytest

from airflow_provider_service.client.errors import ServiceNotLicensedError
from airflow_provider_service.hooks.service import ServiceHook
from tests.conformance.further import offered_by, published_further

from .running import connection
from .servers import LiveServer


def test_the_list_is_what_the_server_publishes(live_server: LiveServer) -> None:
    assert published_further(live_server.openapi()) == offered_by(live_server.generation.name)


def test_the_hook_reaches_every_one_that_can_be_read(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection(live_server)))
    answered, refused = [], []
    with ServiceHook() as service:
        for method, path in sorted(offered_by(live_server.generation.name)):
            if method != "GET" or "{}" in path:
                continue
            try:
                service.request(method, path)
                answered.append(path)
            except ServiceNotLicensedError:
                refused.append(path)

    if ("GET", "/roles") not in offered_by(live_server.generation.name):
        assert (answered, refused) == ([], [])
        return
    assert "/roles" in answered
    assert "/settings/ldap" in refused
