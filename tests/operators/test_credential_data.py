"""The data of credentials in the form that a server takes: before n8n 2.30, empty fields were required or refused."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceInvalidRequestError
from airflow_provider_service.client.resources._credentials import fitted
from airflow_provider_service.simulator import ServiceSimulator

PASSPHRASE = {"keyType": "passphrase", "secret": "s", "algorithm": "HS256"}
PEM = {"privateKey": "", "publicKey": ""}
HEADER = {"name": "X", "value": "y"}
ALL = {"allowedHttpRequestDomains": "all"}


def stored(simulator: ServiceSimulator, credential_id: str) -> dict[str, Any]:
    return simulator.state.credentials.data(credential_id)


@pytest.mark.parametrize(
    ("version", "type", "data", "kept"),
    [
        ("2.41.1", "jwtAuth", PASSPHRASE, PASSPHRASE),
        ("2.41.1", "jwtAuth", {**PASSPHRASE, **PEM}, {**PASSPHRASE, **PEM}),
        ("2.30.8", "httpHeaderAuth", HEADER, HEADER),
        ("2.20.12", "jwtAuth", PASSPHRASE, PASSPHRASE),
        ("2.20.12", "jwtAuth", {**PASSPHRASE, **PEM}, PASSPHRASE),
        ("2.20.12", "httpHeaderAuth", HEADER, {**HEADER, **ALL}),
        ("2.20.12", "httpHeaderAuth", {**HEADER, **ALL}, {**HEADER, **ALL}),
        (
            "2.20.12",
            "httpHeaderAuth",
            {**HEADER, "allowedHttpRequestDomains": "domains", "allowedDomains": "a.example"},
            {**HEADER, "allowedHttpRequestDomains": "domains", "allowedDomains": "a.example"},
        ),
        ("2.20.12", "slackApi", {"accessToken": "x"}, {"accessToken": "x", "notice": "", **ALL}),
        ("1.123.81", "jwtAuth", PASSPHRASE, {**PASSPHRASE, **PEM}),
    ],
)
def test_a_credential_is_created_with_the_data_that_the_server_takes(
    simulator: ServiceSimulator, client: ServiceClient, version: str, type: str, data: Any, kept: Any
) -> None:
    simulator.version = version

    made = client.credentials.create("x", type, data)

    assert stored(simulator, made.id) == kept
    assert len(simulator.state.credentials.all()) == 1


def test_other_data_is_sent_in_the_same_form(simulator: ServiceSimulator, client: ServiceClient) -> None:
    simulator.version = "2.20.12"
    made = client.credentials.create("header", "httpHeaderAuth", HEADER)

    client.credentials.update(made.id, data={"name": "Y", "value": "z"})
    assert stored(simulator, made.id) == {"name": "Y", "value": "z", **ALL}
    client.credentials.update(made.id, type="jwtAuth", data={**PASSPHRASE, **PEM})
    assert stored(simulator, made.id) == PASSPHRASE


def test_nothing_is_added_to_data_that_is_merged(simulator: ServiceSimulator, client: ServiceClient) -> None:
    limited = {"allowedHttpRequestDomains": "domains", "allowedDomains": "a.example"}
    made = client.credentials.create("header", "httpHeaderAuth", {**HEADER, **limited})
    simulator.version = "2.20.12"
    client.credentials.update(made.id, data={"value": "z"}, is_partial_data=True)
    simulator.inject("status", status=400, method="PATCH")
    simulator.clear_requests()

    with pytest.raises(ServiceInvalidRequestError):
        client.credentials.update(made.id, data={"name": "Y"}, is_partial_data=True)

    assert len(simulator.requests) == 1
    assert stored(simulator, made.id) == {"name": "X", "value": "z", **limited}


@pytest.mark.parametrize("version", ["2.20.12", "2.41.1"])
@pytest.mark.parametrize(
    ("type", "data", "words"),
    [
        ("noSuchType", {}, "not a known type"),
        ("httpHeaderAuth", {"name": 5}, "not of a type"),
        ("httpHeaderAuth", {**HEADER, "x": "y"}, 'additional property "x"'),
        ("slackApi", {}, 'requires property "accessToken"'),
    ],
)
def test_what_fits_in_no_form_is_refused_with_the_reason(
    simulator: ServiceSimulator, client: ServiceClient, version: str, type: str, data: Any, words: str
) -> None:
    simulator.version = version

    with pytest.raises(ServiceInvalidRequestError, match=words):
        client.credentials.create("x", type, data)

    assert not simulator.state.credentials.all()


def test_a_refusal_by_a_newer_server_is_final(simulator: ServiceSimulator, client: ServiceClient) -> None:
    simulator.clear_requests()
    with pytest.raises(ServiceInvalidRequestError):
        client.credentials.create("x", "slackApi", {"signatureSecret": "s"})
    assert [one.method for one in simulator.requests] == ["POST", "GET"]


def test_a_restriction_to_domains_is_never_lost() -> None:
    limited = {"allowedHttpRequestDomains": "domains", "allowedDomains": "a.example"}
    assert fitted(limited, {"properties": {}}) == limited
    assert fitted({"allowedHttpRequestDomains": "none"}, {}) == {"allowedHttpRequestDomains": "none"}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"allOf": None, "properties": None},
        {"allOf": "x", "properties": []},
        {"allOf": [None, 5, [], {}, {"if": 5}, {"if": {"properties": []}, "then": {}}]},
        {
            "allOf": [
                {"if": {"properties": {"a": None}}, "then": {"allOf": [None, {"required": "x"}, {"required": [5]}]}}
            ]
        },
        {"allOf": [{"if": {"properties": {"a": {"enum": {}}}}, "then": {"allOf": "x"}}], "properties": {"a": 5}},
    ],
)
def test_a_schema_of_another_form_changes_nothing(schema: Any) -> None:
    assert fitted(HEADER, schema) == HEADER
