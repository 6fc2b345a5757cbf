"""Settings of a server: forms of the address, limits, and messages that contain no value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from airflow_provider_service import client as client_package
from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.client.errors import ServiceConfigError

KEY = "key-1"
# Values that no message may contain.
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
        ("https://host:443/x", "https://host/x/api/v1"),
        ("http://host:80", "http://host/api/v1"),
        ("http://host:443", "http://host:443/api/v1"),
    ],
)
def test_an_address_leads_to_the_api_root(address: str, root: str) -> None:
    assert parse(base_url=address).api_root == root


def test_the_version_can_be_given_separately() -> None:
    assert parse(api_version="3").api_root == "https://host/api/v3"
    assert parse(base_url="https://host/api/v2", api_version=4).api_root == "https://host/api/v4"


@pytest.mark.parametrize(
    ("webhook_base_url", "base"),
    [
        (None, "https://host/p"),
        ("", "https://host/p"),
        ("https://hooks.example/x/", "https://hooks.example/x"),
    ],
)
def test_webhooks_can_have_a_separate_address(webhook_base_url: str | None, base: str) -> None:
    assert parse(base_url="https://host/p", webhook_base_url=webhook_base_url).webhook_root == base
    direct = ServiceConfig(base_url="https://host/p", api_key=SecretStr(KEY), webhook_base_url=webhook_base_url or None)
    assert direct.webhook_root == base


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("https://hooks.example/webhook", "https://hooks.example"),
        ("https://hooks.example/webhook/", "https://hooks.example"),
        ("https://hooks.example/x/webhook", "https://hooks.example/x"),
        ("https://hooks.example/webhook/webhook", "https://hooks.example/webhook"),
        ("https://webhook", "https://webhook"),
        ("https://webhook/webhooks", "https://webhook/webhooks"),
    ],
)
def test_the_address_of_webhooks_may_end_in_webhook(given: str, base: str) -> None:
    assert parse(webhook_base_url=given).webhook_root == base


@pytest.mark.parametrize("path", ["/webhook/nightly", "/x/webhook/a/b", "/webhook-test"])
def test_the_address_of_one_webhook_is_refused(path: str) -> None:
    with pytest.raises(ServiceConfigError, match="'webhook_base_url': must be the address before /webhook/, without"):
        parse(webhook_base_url=f"https://hooks.example{path}")


@pytest.mark.parametrize("field", ["base_url", "webhook_base_url"])
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (f"ftp://{SECRET}", "must be an address such as"),
        (SECRET, "must be an address such as"),
        ("http://", "must be an address such as"),
        (f"//{SECRET}", "must be an address such as"),
        (f"https://user:{SECRET}@host", "must not contain a user or password"),
        (f"https://{SECRET}@host", "must not contain a user or password"),
        (f"https://host?key={SECRET}", "must not contain a query or fragment"),
        (f"https://host#{SECRET}", "must not contain a query or fragment"),
        (f"https://host:{SECRET}", "is not a valid address"),
        ("https://host:99999", "is not a valid address"),
        (f"https://[{SECRET}", "is not a valid address"),
        (f"https://{SECRET}\u2100", "is not a valid address"),
        (5, "should be a valid string"),
    ],
)
def test_an_unusable_address_is_reported(field: str, address: Any, problem: str) -> None:
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
        ("key_header", f"{SECRET}: x"),
        ("key_header", f"{SECRET}\r\nHost"),
        ("api_version", 0),
        ("api_version", SECRET),
        ("api_version", 100),
        ("timeout", 1e300),
        ("timeout", 86_401),
        ("connect_timeout", "1e300"),
        ("retry_deadline", 10**400),
        ("timeout", 0),
        ("timeout", SECRET),
        ("mcp_api_key", f"{SECRET} {SECRET}"),
        ("mcp_api_key", f"{SECRET}\n"),
        ("mcp_api_key", [SECRET]),
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
        ("proxies", '{"a": ' * 5000),
        ("proxies", {"https": f"http://:{SECRET}@"}),
        ("proxies", {"https": f"http://user:{SECRET}@proxy:{SECRET}"}),
        ("proxies", {"https": f"http://user:{SECRET}#1@proxy"}),
        ("proxies", {"https": f"http://[{SECRET}"}),
        ("proxies", {"https": f"ftp://{SECRET}"}),
        ("proxies", {"https": "http://proxy\ud800"}),
        ("proxies", {"htps": f"http://{SECRET}"}),
        ("proxies", {f"http://user:{SECRET}@proxy": None}),
        ("verify", f"/{SECRET}\0"),
        ("cert", [f"/{SECRET}\ud800", "k"]),
        ("page_size", 0),
        ("page_size", 251),
        ("max_answer_mib", 4097),
        ("max_answer_mib", 10**400),
        ("max_payload_mib", 1025),
        ("max_payload_mib", 10**400),
        ("page_size", SECRET),
    ],
)
def test_a_bad_value_is_named_by_its_field_and_never_shown(field: str, value: Any) -> None:
    with pytest.raises(ServiceConfigError, match=f"^connection 'x': field '{field}") as caught:
        parse(**{field: value})

    assert SECRET not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("api_key", "***"),
        ("key_header", " *** "),
        ("mcp_api_key", "***"),
        ("webhook_base_url", "***"),
        ("timeout", "***"),
        ("verify", "***"),
        ("cert", ["***", "k.pem"]),
        ("proxies", "***"),
        ("proxies", {"https": "***"}),
        ("proxies", '{"https": "***"}'),
    ],
)
def test_a_mask_that_was_saved_in_place_of_a_value_is_refused(field: str, value: Any) -> None:
    with pytest.raises(
        ServiceConfigError, match=rf"^connection 'x': field '{field}': is \*\*\*, the mask that"
    ) as caught:
        parse(**{field: value})

    assert "Enter the value itself" in str(caught.value)


@pytest.mark.parametrize("address", ["http://user:***@proxy:3128", "user:***@proxy:3128", "http://***@proxy:3128"])
def test_a_mask_inside_the_address_of_a_proxy_is_refused(address: str) -> None:
    with pytest.raises(ServiceConfigError, match=r"^connection 'x': field 'proxies': holds \*\*\*, the mask that"):
        parse(proxies={"https": address})


def test_numbers_flags_and_empty_fields_are_read_as_a_form_saves_them() -> None:
    config = parse(timeout=" 60 ", connect_timeout="2.5", retry_deadline="0", page_size="100", api_version="1")

    assert (config.timeout, config.connect_timeout, config.retry_deadline) == (60.0, 2.5, 0.0)
    assert (config.page_size, config.api_version) == (100, 1)
    assert parse(verify="False ").verify is False
    assert parse(webhook_base_url=" ", mcp_api_key="", cert=None, proxies="", key_header="  ", timeout=None) == parse()


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ServiceConfigError) as caught:
        ServiceConfig.parse("extras", {"timeout": -1, "tiemout": 5, "api_key": ""})

    text = str(caught.value)
    assert "field 'base_url' is missing" in text
    assert "field 'api_key' is missing" in text
    assert "field 'timeout': Input should be greater than 0" in text
    assert "unknown field 'tiemout'; the known fields are api_version, bridge_secret, cert, connect_timeout" in text


def test_absent_values_leave_the_defaults() -> None:
    config = parse(timeout=None, page_size="", verify=None)

    assert (config.timeout, config.connect_timeout, config.retry_deadline) == (30.0, 5.0, 60.0)
    assert (config.page_size, config.verify, config.key_header) == (250, True, "X-SERVICE-API-KEY")


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
    assert parse(proxies=given).proxy_addresses == {"https": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("proxy:3128", "http://proxy:3128"),
        (" https://user:p%40ss@proxy:3128 ", "https://user:p%40ss@proxy:3128"),
        ("http://[::1]:3128", "http://[::1]:3128"),
        ("socks5h://proxy", "socks5h://proxy"),
        ("", ""),
    ],
)
def test_a_proxy_is_an_address(given: str, kept: str) -> None:
    assert parse(proxies={"all": given, "https://host": given}).proxy_addresses == {"all": kept, "https://host": kept}


def test_secrets_are_not_shown() -> None:
    config = parse(api_key=SECRET, proxies={"https": f"http://user:{SECRET}@proxy"})

    assert SECRET not in repr(config) + str(config) + repr(config.model_dump()) + config.model_dump_json()
    assert SECRET not in repr(vars(config))
    assert config.proxy_addresses == {"https": f"http://user:{SECRET}@proxy"}
    assert config.api_key.get_secret_value() == SECRET


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse().timeout = 5.0  # type: ignore[misc]


def test_the_package_offers_its_two_names_late() -> None:
    assert client_package.ServiceConfig is ServiceConfig
    assert client_package.ServiceClient.__name__ == "ServiceClient"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = client_package.Nothing  # type: ignore[attr-defined]
