"""The provider's options in Airflow's configuration. Nothing else in the package reads it."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import conf  # noqa: TID251 - here it is read for all others
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

#: ``[operators] default_deferrable``: whether tasks wait in the triggerer by default.
DEFAULT_DEFERRABLE: bool = conf.getboolean("operators", "default_deferrable", fallback=False)


def base_url() -> str:
    """``[api] base_url``: the address of this Airflow, or of the web server of Airflow 2; empty if it is not set."""
    return conf.get("api" if AIRFLOW_V_3_0_PLUS else "webserver", "base_url", fallback=None) or ""


def base_path() -> str:
    """The path of :func:`base_url`, below which Airflow's own pages are, without a trailing slash."""
    return urlsplit(base_url()).path.rstrip("/")


def deployment() -> str | None:
    """``[service] deployment``: distinguishes this Airflow from others that share the service; by default its
    address."""
    return conf.get("service", "deployment", fallback=None) or base_url() or None


def api_workers() -> int:
    return int(conf.getint("api", "workers", fallback=1))


def shows_data() -> bool:
    """``[service] show_data``: whether the pages show the data of executions."""
    return bool(conf.getboolean("service", "show_data", fallback=False))
