"""What a client must know of a server: address, key, limits of time, TLS and proxies."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from airflow_provider_service.client.errors import ServiceConfigError

DEFAULT_API_KEY_HEADER = "X-SERVICE-API-KEY"

_API_ROOT = re.compile(r"/api/v(?P<version>\d+)$")
# Labels of at most 63 characters, or an IPv6 address.
_HOST = re.compile(r"(?!.{254})([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|[0-9a-f:.]*:[0-9a-f:.]+")
_FLAGS = {"true": True, "false": False}


class ServiceConfig(BaseModel):
    """Settings of one server.

    :param base_url: http(s) address, with port and path prefix if any, with or without ``/api/v1``.
    :param api_key: the key.
    :param api_key_header: header that carries the key; n8n servers expect ``X-N8N-API-KEY``.
    :param api_version: number in the path of the API root; taken from ``base_url`` when it stands there.
    :param webhook_url: address that production webhooks are called on, when it is not ``base_url``.
    :param timeout: seconds to wait for an answer.
    :param connect_timeout: seconds to wait for a connection.
    :param retry_deadline: seconds in which a call and all its retries must begin; 0 turns retries off.
    :param verify: check TLS certificates: yes, no, or the path of a CA bundle.
    :param cert: client certificate: a path, or paths of certificate and key.
    :param proxies: proxy by scheme, e.g. ``{"https": "http://proxy:3128"}``.
    :param page_size: items to ask for in a page, 1 to 250.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    base_url: str
    api_key: SecretStr
    api_key_header: str = Field(DEFAULT_API_KEY_HEADER, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
    api_version: int = Field(1, ge=1)
    webhook_url: str | None = None
    timeout: float = Field(30.0, gt=0)
    connect_timeout: float = Field(5.0, gt=0)
    retry_deadline: float = Field(60.0, ge=0)
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    proxies: dict[str, str] | None = Field(None, repr=False)  # an address can hold a password
    page_size: int = Field(250, ge=1, le=250)

    @classmethod
    def parse(cls, source: str, values: dict[str, Any]) -> ServiceConfig:
        """Read settings, or say in one message all that is wrong with them.

        :param source: what to call the origin of the values, e.g. ``"connection 'service_default'"``.
        :param values: settings by name; values of None and "" count as absent.
        :raises ServiceConfigError: unknown name or bad value; the message never holds a value.
        """
        try:
            return cls.model_validate({name: value for name, value in values.items() if value not in (None, "")})
        except ValidationError as error:
            raise ServiceConfigError(f"{source}: {'; '.join(map(_problem, error.errors()))}") from None

    @model_validator(mode="before")
    @classmethod
    def _version_from_address(cls, values: dict[str, Any]) -> dict[str, Any]:
        address = values.get("base_url")
        found = _API_ROOT.search(address.strip().rstrip("/")) if isinstance(address, str) else None
        return {"api_version": int(found["version"]), **values} if found else values

    @field_validator("base_url", "webhook_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.strip()
        try:
            parts = urlsplit(value)
            port = f":{parts.port}" if parts.port else ""
        except ValueError:  # its text holds the value
            raise ValueError("is not a valid address; is the port a number up to 65535?") from None
        name = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not _HOST.fullmatch(name) or not value.isprintable():
            raise ValueError("must be an address such as https://service.example.com/prefix")
        if parts.username or parts.password:
            raise ValueError("must not hold a user or password; the key belongs in the password field")
        if parts.query or parts.fragment:
            raise ValueError("must not hold a query or fragment")
        path = _API_ROOT.sub("", parts.path.rstrip("/"))
        host = f"[{name}]" if ":" in name else name
        return f"{parts.scheme}://{host}{port}{path}"

    @field_validator("api_key")
    @classmethod
    def _key(cls, value: SecretStr) -> SecretStr:
        if not re.fullmatch(r"[\x21-\x7e]+", value.get_secret_value()):
            raise ValueError("must be printable ASCII without blanks; was a line break copied with it?")
        return value

    @field_validator("verify", mode="before")
    @classmethod
    def _flag_from_text(cls, value: Any) -> Any:
        return _FLAGS.get(value.lower(), value) if isinstance(value, str) else value

    @field_validator("cert", "proxies", mode="before")
    @classmethod
    def _json_from_text(cls, value: Any) -> Any:
        if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
            return json.loads(value)
        return value

    def one_try(self, *, connect_timeout: float | None = None, timeout: float | None = None) -> ServiceConfig:
        """The same settings without retries, and with other limits of time if they are given, in seconds."""
        limits = {"connect_timeout": connect_timeout, "timeout": timeout}
        given = {name: seconds for name, seconds in limits.items() if seconds is not None}
        return self.model_copy(update={"retry_deadline": 0.0, **given})

    @property
    def api_root(self) -> str:
        """Address that every path of the API is relative to."""
        return f"{self.base_url}/api/v{self.api_version}"

    @property
    def webhook_base(self) -> str:
        """Address below which production webhooks are."""
        return self.webhook_url or self.base_url


#: Settings beside the address and the key.
EXTRAS = ServiceConfig.model_fields.keys() - {"base_url", "api_key"}


def _problem(error: Any) -> str:
    field = ".".join(map(str, error["loc"])) or "fields"
    if error["type"] == "extra_forbidden":
        return f"unknown field '{field}'; known are {', '.join(sorted(EXTRAS))}"
    if error["type"] == "missing":
        return f"field '{field}' is missing"
    return f"field '{field}': {error['msg'].removeprefix('Value error, ')}"
