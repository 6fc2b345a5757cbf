"""Settings that a client needs to reach a server: address, key, time limits, TLS and proxies."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from airflow_provider_service.client.errors import ServiceConfigError

DEFAULT_KEY_HEADER = "X-SERVICE-API-KEY"

#: The longest time that can be set, in seconds: one day. Sockets and clocks fail with far longer times.
MAX_SETTING_SECONDS = 86_400.0

_API_ROOT = re.compile(r"/api/v(?P<version>\d{1,2})$")
DEFAULT_PORTS = {"http": 80, "https": 443}
# Labels of up to 63 characters, or an IPv6 address.
_HOST = re.compile(r"(?!.{254})([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|[0-9a-f:.]*:[0-9a-f:.]+")
_FLAGS = {"true": True, "false": False}
_MASK = "***"
_PROXIED = re.compile(r"(https?|all)(://.+)?")
_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")


class ServiceConfig(BaseModel):
    """Settings of one server.

    :param base_url: http(s) address, with port and path prefix if any, with or without ``/api/v1``.
    :param api_key: the API key.
    :param key_header: header that carries the key, ``X-SERVICE-API-KEY`` by default; n8n expects
        ``X-N8N-API-KEY``.
    :param api_version: number in the path of the API root; by default the one in ``base_url``, or else 1.
    :param mcp_api_key: key of the server's MCP endpoint, which is not the API key; None by default.
    :param webhook_base_url: address that production webhooks are relative to, with or without a trailing
        ``/webhook``; None by default, for ``base_url``.
    :param timeout: seconds within which the whole answer of one try must arrive, connecting included; 30 by default.
    :param connect_timeout: how many of these seconds connecting may take, including all addresses, proxy and TLS; 5 by
        default.
    :param retry_deadline: seconds within which a call and all its retries must begin, 60 by default; 0 turns retries
        off. A call thus takes ``retry_deadline`` plus ``timeout`` at most.
    :param verify: whether to check TLS certificates (True by default), or the path of a CA bundle to check them with.
    :param cert: client certificate: a path, or paths of certificate and key; None by default.
    :param proxies: proxy by scheme, e.g. ``{"https": "http://user:password@proxy:3128"}``; an empty address means none.
        A SOCKS proxy needs the package PySocks.
    :param page_size: items to request per page, 1 to 250; 250 by default.
    :param max_answer_mib: largest answer to read, in MiB after decompression; 1 to 4096, 256 by default.
    :param max_payload_mib: largest body that a webhook accepts, in MiB, up to 1024; 16 by default, like the server's
        ``N8N_PAYLOAD_SIZE_MAX``.
    :param bridge_secret: text of at least 16 characters, the same in all connections that use one bridge; None by
        default, for the API key.
    :param max_files_mib: largest total size of the files in one call of a webhook, in MiB, up to 4096; 200 by default,
        like the server's ``N8N_FORMDATA_FILE_SIZE_MAX``.
    :param application: program that uses the client, as ``name/version``; every call names it in its ``User-Agent``.
        None by default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    base_url: str
    api_key: SecretStr
    key_header: str = Field(DEFAULT_KEY_HEADER, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
    api_version: int = Field(1, ge=1, le=99)
    mcp_api_key: SecretStr | None = None
    webhook_base_url: str | None = None
    timeout: float = Field(30.0, gt=0, le=MAX_SETTING_SECONDS)
    connect_timeout: float = Field(5.0, gt=0, le=MAX_SETTING_SECONDS)
    retry_deadline: float = Field(60.0, ge=0, le=MAX_SETTING_SECONDS)
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    proxies: dict[str, SecretStr] | None = None  # an address can hold a password
    page_size: int = Field(250, ge=1, le=250)
    # The service returns up to 100 MiB of an execution's data by default.
    max_answer_mib: int = Field(256, ge=1, le=4096)
    max_payload_mib: float = Field(16.0, gt=0, le=1024)
    bridge_secret: SecretStr | None = Field(None, min_length=16)
    max_files_mib: float = Field(200.0, gt=0, le=4096)
    application: str | None = Field(None, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~/ -]+$")

    @classmethod
    def parse(cls, source: str, values: dict[str, Any]) -> ServiceConfig:
        """Read settings, or report everything that is wrong with them in one message.

        :param source: where the values come from, for the message, e.g. ``"connection 'service_default'"``.
        :param values: settings by name; None and blank text count as absent.
        :raises ServiceConfigError: an unknown name or an invalid value; the message never contains a value.
        """
        try:
            return cls.model_validate({name: value for name, value in values.items() if not is_blank(value)})
        except ValidationError as error:
            raise ServiceConfigError("; ".join(map(_problem, error.errors())), source=source) from None

    @model_validator(mode="before")
    @classmethod
    def _version_from_address(cls, values: dict[str, Any]) -> dict[str, Any]:
        address = values.get("base_url")
        root = _API_ROOT.search(address.strip().rstrip("/")) if isinstance(address, str) else None
        return {"api_version": int(root["version"]), **values} if root else values

    # Pydantic runs "before" validators in reverse order of definition, so this one sees parsed JSON.
    @field_validator("*", mode="before")
    @classmethod
    def _no_mask(cls, value: Any) -> Any:
        if _holds_mask(value):
            raise ValueError(
                f"is {_MASK}, the mask that Airflow shows in place of a secret: the mask was saved, not the value. "
                "Enter the value itself, or clear the field for its default"
            )
        return value

    @field_validator("base_url", "webhook_base_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.strip()
        try:
            parts = urlsplit(value)
            port = f":{parts.port}" if parts.port and parts.port != DEFAULT_PORTS.get(parts.scheme) else ""
        except ValueError:  # the error's text contains the value
            raise ValueError("is not a valid address; is the port a number up to 65535?") from None
        name = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not _HOST.fullmatch(name) or not value.isprintable():
            raise ValueError("must be an address such as https://service.example.com/prefix")
        if parts.username or parts.password:
            raise ValueError("must not contain a user or password; the key belongs in the password field")
        if parts.query or parts.fragment:
            raise ValueError("must not contain a query or fragment")
        path = _API_ROOT.sub("", parts.path.rstrip("/"))
        host = f"[{name}]" if ":" in name else name
        return f"{parts.scheme}://{host}{port}{path}"

    @field_validator("webhook_base_url")
    @classmethod
    def _above_webhooks(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        path = parts.path.removesuffix("/webhook")
        if "/webhook/" in path or path.endswith("/webhook-test"):
            raise ValueError("must be the address before /webhook/, without a path after it, and not for test webhooks")
        return parts._replace(path=path).geturl()

    @field_validator("api_key", "mcp_api_key")
    @classmethod
    def _key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not re.fullmatch(r"[\x21-\x7e]+", value.get_secret_value()):
            raise ValueError("must be printable ASCII without blanks; was a line break copied with it?")
        return value

    @field_validator("proxies")
    @classmethod
    def _proxy_addresses(cls, value: dict[str, SecretStr] | None) -> dict[str, SecretStr] | None:
        if not all(map(_PROXIED.fullmatch, value or ())):
            raise ValueError(
                "must have the names http, https or all, or one of these with a host, such as https://host"
            )
        return value and {name: SecretStr(_proxy(address.get_secret_value())) for name, address in value.items()}

    @field_validator("verify", "cert")
    @classmethod
    def _paths(cls, value: Any) -> Any:
        paths = value if isinstance(value, tuple) else (value,)
        if any(isinstance(path, str) and not path.isprintable() for path in paths):
            raise ValueError("must be a path without control characters")
        return value

    @field_validator("verify", mode="before")
    @classmethod
    def _flag_from_text(cls, value: Any) -> Any:
        return _FLAGS.get(value.strip().lower(), value) if isinstance(value, str) else value

    @field_validator("cert", "proxies", mode="before")
    @classmethod
    def _json_from_text(cls, value: Any) -> Any:
        if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
            try:
                return json.loads(value)
            except RecursionError:
                raise ValueError("is JSON that is nested too deeply") from None
        return value

    def one_try(
        self, *, connect_timeout: float | None = None, timeout: float | None = None, max_answer_mib: int | None = None
    ) -> ServiceConfig:
        """Copy the settings without retries and, if given, with other limits of time in seconds, or of size."""
        limits = {"connect_timeout": connect_timeout, "timeout": timeout, "max_answer_mib": max_answer_mib}
        changed = {name: limit for name, limit in limits.items() if limit is not None}
        return self.model_copy(update={"retry_deadline": 0.0, **changed})

    @property
    def api_root(self) -> str:
        """Address that every path of the API is relative to."""
        return f"{self.base_url}/api/v{self.api_version}"

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys, so that logs and messages can leave them out."""
        keys = (self.api_key, self.mcp_api_key, self.bridge_secret)
        return tuple(key.get_secret_value() for key in keys if key is not None)

    @property
    def webhook_root(self) -> str:
        """Address that ``/webhook`` and the paths of production webhooks are relative to."""
        return self.webhook_base_url or self.base_url

    @property
    def proxy_addresses(self) -> dict[str, str]:
        """The proxies with their passwords."""
        return {name: address.get_secret_value() for name, address in (self.proxies or {}).items()}


#: Settings that are not among the extras of a connection.
NO_EXTRAS = frozenset({"api_key", "application", "base_url"})
EXTRAS = ServiceConfig.model_fields.keys() - NO_EXTRAS


def is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _holds_mask(value: Any) -> bool:
    if isinstance(value, (dict, list, tuple)):
        return any(map(_holds_mask, value.values() if isinstance(value, dict) else value))
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    return isinstance(text, str) and text.strip() == _MASK


def _proxy(address: str) -> str:
    address = address.strip()
    if not address:
        return ""
    address = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises an error for an invalid port
        is_valid = parts.scheme in _PROXY_SCHEMES and _HOST.fullmatch(parts.hostname or "") and address.isprintable()
    except ValueError:  # the error's text contains the value
        is_valid = False
    if _MASK in address:
        raise ValueError(
            f"holds {_MASK}, the mask that Airflow shows in place of a secret: the mask was saved, not the value. "
            "Enter user and password of the proxy again"
        )
    if not is_valid:
        raise ValueError(
            "must contain addresses such as http://proxy:3128 or http://user:password@proxy:3128, "
            "with special characters of user and password percent-encoded"
        )
    return address


def _problem(error: Any) -> str:
    field = str(next(iter(error["loc"]), "fields"))  # below it stands what was given, such as the address of a proxy
    if error["type"] == "extra_forbidden":
        return f"unknown field '{field}'; the known fields are {', '.join(sorted(EXTRAS))}"
    if error["type"] == "missing":
        return f"field '{field}' is missing"
    return f"field '{field}': {error['msg'].removeprefix('Value error, ')}"
