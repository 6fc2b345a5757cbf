"""Settings of a server: forms of the address, limits, and messages that hold no value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from airflow_provider_service import client as client_package
from airflow_provider_service.client.config import ServiceConfig
from airflow_provider_service.client.errors import ServiceConfigError

KEY = "key-1"
# What no message may hold.
SECRET = "S3CRET"


def parse(**values: Any) -> ServiceConfig:
    return ServiceConfig.parse("connection 'x'", {"base_url": "https://host", "api_key": KEY, **values})


@pytest.mark.parametrize(
    ("address", "root"),
    [
        ("https://host", "https://host/api/v1"),
        ("https://host/", "https://host/api/v1"),
        ("HTTPS://Host.Example", "https://host.example/api/v1"),
        ("http://host:5678", "http://host:5678/api/v1"),
        ("http://host:5678/prefix/", "http://host:5678/prefix/api/v1"),
        ("http://host/a/b", "http://host/a/b/api/v1"),
        ("https://host/api/v1", "https://host/api/v1"),
        ("https://host/prefix/api/v1/", "https://host/prefix/api/v1"),
        ("https://host/api/v2", "https://host/api/v2"),
        (" https://host/api/v2/ ", "https://host/api/v2"),
        ("http://[::1]:5678", "http://[::1]:5678/api/v1"),
        ("http://[2001:db8::1]/x", "http://[2001:db8::1]/x/api/v1"),
        ("https://host/api/version1", "https://host/api/version1/api/v1"),
    ],
)
def test_an_address_leads_to_the_api_root(address: str, root: str) -> None:
    assert parse(base_url=address).api_root == root


def test_the_version_can_be_given_apart() -> None:
    assert parse(api_version="3").api_root == "https://host/api/v3"
    assert parse(base_url="https://host/api/v2", api_version=4).api_root == "https://host/api/v4"


@pytest.mark.parametrize(
    ("webhook_url", "base"),
    [
        (None, "https://host/p"),
        ("", "https://host/p"),
        ("https://hooks.example/x/", "https://hooks.example/x"),
    ],
)
def test_webhooks_can_have_an_address_of_their_own(webhook_url: str | None, base: str) -> None:
    assert parse(base_url="https://host/p", webhook_url=webhook_url).webhook_base == base
    direct = ServiceConfig(base_url="https://host/p", api_key=SecretStr(KEY), webhook_url=webhook_url or None)
    assert direct.webhook_base == base


@pytest.mark.parametrize("field", ["base_url", "webhook_url"])
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (f"ftp://{SECRET}", "must be an address such as"),
        (SECRET, "must be an address such as"),
        ("http://", "must be an address such as"),
        (f"//{SECRET}", "must be an address such as"),
        (f"https://user:{SECRET}@host", "must not hold a user or password"),
        (f"https://{SECRET}@host", "must not hold a user or password"),
        (f"https://host?key={SECRET}", "must not hold a query or fragment"),
        (f"https://host#{SECRET}", "must not hold a query or fragment"),
        (f"https://host:{SECRET}", "is not a valid address"),
        ("https://host:99999", "is not a valid address"),
        (f"https://[{SECRET}", "is not a valid address"),
        (f"https://{SECRET}\u2100", "is not a valid address"),
        (5, "should be a valid string"),
    ],
)
def test_an_address_that_can_not_be_used_is_said_to_be_so(field: str, address: Any, problem: str) -> None:
    with pytest.raises(ServiceConfigError) as caught:
        parse(**{field: address})

    assert f"connection 'x': field '{field}': " in str(caught.value)
    assert problem in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("api_key", f"{SECRET}\n"),
        ("api_key", f"{SECRET} "),
        ("api_key", f"{SECRET}é"),
        ("api_key", 5),
        ("api_key_header", f"{SECRET}: x"),
        ("api_key_header", f"{SECRET}\r\nHost"),
        ("api_version", 0),
        ("api_version", SECRET),
        ("timeout", 0),
        ("timeout", SECRET),
        ("timeout", "inf"),
        ("timeout", "nan"),
        ("connect_timeout", -1),
        ("connect_timeout", SECRET),
        ("retry_deadline", -0.5),
        ("retry_deadline", SECRET),
        ("verify", 5),
        ("verify", [SECRET]),
        ("cert", {"a": SECRET}),
        ("cert", f'["{SECRET}"]'),
        ("cert", f'["{SECRET}'),
        ("proxies", SECRET),
        ("proxies", f'{{"https": ["{SECRET}"]}}'),
        ("proxies", f'{{"https": "{SECRET}'),
        ("page_size", 0),
        ("page_size", 251),
        ("page_size", SECRET),
    ],
)
def test_a_bad_value_is_named_by_its_field_and_never_shown(field: str, value: Any) -> None:
    with pytest.raises(ServiceConfigError, match=f"^connection 'x': field '{field}") as caught:
        parse(**{field: value})

    assert SECRET not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ServiceConfigError) as caught:
        ServiceConfig.parse("extras", {"timeout": -1, "tiemout": 5, "api_key": ""})

    text = str(caught.value)
    assert "field 'base_url' is missing" in text
    assert "field 'api_key' is missing" in text
    assert "field 'timeout': Input should be greater than 0" in text
    assert "unknown field 'tiemout'; known are api_key_header, api_version, cert, connect_timeout" in text


def test_absent_values_leave_the_defaults() -> None:
    config = parse(timeout=None, page_size="", verify=None)

    assert (config.timeout, config.connect_timeout, config.retry_deadline) == (30.0, 5.0, 60.0)
    assert (config.page_size, config.verify, config.api_key_header) == (250, True, "X-SERVICE-API-KEY")


@pytest.mark.parametrize(
    ("given", "kept"),
    [("true", True), ("False", False), (False, False), (True, True), ("/etc/ssl/ca.pem", "/etc/ssl/ca.pem")],
)
def test_verify_is_a_flag_or_a_path(given: Any, kept: Any) -> None:
    assert parse(verify=given).verify == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [("client.pem", "client.pem"), ('["c.pem", "k.pem"]', ("c.pem", "k.pem")), (["c", "k"], ("c", "k"))],
)
def test_a_client_certificate_is_a_path_or_two(given: Any, kept: Any) -> None:
    assert parse(cert=given).cert == kept


@pytest.mark.parametrize("given", ['{"https": "http://proxy:3128"}', {"https": "http://proxy:3128"}])
def test_proxies_are_an_object_or_its_json(given: Any) -> None:
    assert parse(proxies=given).proxies == {"https": "http://proxy:3128"}


def test_secrets_are_not_shown() -> None:
    config = parse(api_key=SECRET, proxies={"https": f"http://user:{SECRET}@proxy"})

    assert SECRET not in repr(config) + str(config)
    assert config.api_key.get_secret_value() == SECRET


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse().timeout = 5.0  # type: ignore[misc]


def test_the_package_offers_its_two_names_late() -> None:
    assert client_package.ServiceConfig is ServiceConfig
    assert client_package.ServiceClient.__name__ == "ServiceClient"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = client_package.Nothing  # type: ignore[attr-defined]
