"""Turn the failure of an exchange into the exception that names it."""

from __future__ import annotations

import re
import ssl

import requests
from urllib3.exceptions import ClosedPoolError, LocationValueError, NewConnectionError, ProxyError, ReadTimeoutError

from airflow_provider_service.client import errors
from airflow_provider_service.client._config import ServiceConfig
from airflow_provider_service.client._texts import one_line

# The other side closed a TLS connection, which does not show whether it had read a request. Other errors of TLS are
# those of a handshake: our connections report the later ones as lost.
_TLS_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)

# There was no connection on which a request could have been sent.
_NO_CONNECTION = (ClosedPoolError, NewConnectionError, ProxyError)

# The base URL was checked when it was configured, so an invalid address can only be that of the proxy.
_BAD_PROXY = (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, LocationValueError)

_CHECK_ADDRESS = "Check host and port of the connection, and that the service runs and can be reached from here"

_TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: (\d{3})")


def failure_to_answer(
    error: Exception, method: str, path: str, config: ServiceConfig, *, timeout: float, proxy: str | None
) -> Exception:
    """Name the failure of an exchange that ended without a complete answer.

    :param timeout: seconds that the exchange was allowed to take.
    :param proxy: address of the proxy that was used; it may contain a password.
    """
    named = _proxy_failure(error, method, path, proxy)
    if named is not None:
        return named
    inner, through = _innermost(error), f" through the proxy {_shown(proxy)}" if proxy else ""
    if isinstance(error, requests.ConnectTimeout):
        seconds = min(config.connect_timeout, timeout)
        return errors.ServiceUnreachableError(
            f"no connection to {config.base_url}{through} within {seconds:g} s",
            method=method,
            path=path,
            hint=_CHECK_ADDRESS,
        )
    if isinstance(error, requests.Timeout) or isinstance(inner, (TimeoutError, ReadTimeoutError)):
        return errors.ServiceTimeoutError(
            f"the whole answer did not arrive within the timeout of {timeout:g} s", method=method, path=path
        )
    if isinstance(error, requests.exceptions.SSLError) and not isinstance(inner, _TLS_ENDED):
        return errors.ServiceTlsError(
            f"TLS failed with {config.base_url}{through}: {_root_cause(error)}",
            method=method,
            path=path,
            hint="Check the scheme of the host and the extra 'verify'",
        )
    if isinstance(error, requests.ConnectionError) and not _was_sent(error):
        return errors.ServiceUnreachableError(
            f"{config.base_url} is not reachable{through}: {_root_cause(error)}",
            method=method,
            path=path,
            hint=_CHECK_ADDRESS,
        )
    if isinstance(error, (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        return errors.ServiceConnectionLostError(
            f"the connection broke before the whole answer arrived: {_root_cause(error)}", method=method, path=path
        )
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return errors.ServiceConfigError(f"the extras 'verify' and 'cert' cannot be used: {error}; nothing was sent")
    is_garbled = isinstance(error, requests.exceptions.ContentDecodingError)
    kind = errors.ServiceUnreadableResponseError if is_garbled else errors.ServiceUnexpectedResponseError
    return kind(f"the answer cannot be read: {type(error).__name__}", method=method, path=path)


def _proxy_failure(error: Exception, method: str, path: str, proxy: str | None) -> Exception | None:
    if isinstance(error, _BAD_PROXY):
        return bad_proxy(proxy)
    if not isinstance(error, requests.exceptions.ProxyError):
        return None
    refused = _TUNNEL_REFUSED.search(str(_innermost(error)))
    return proxy_error(_root_cause(error), method, path, proxy, status=int(refused[1]) if refused else None)


def bad_proxy(proxy: str | None) -> errors.ServiceConfigError:
    """Report that the address of a proxy is not valid."""
    return errors.ServiceConfigError(
        f"the proxy {_shown(proxy)} cannot be used: its address is not valid, or a package for it is missing; see the "
        "connection's extra 'proxies' and the proxies of the environment; nothing was sent"
    )


def proxy_error(
    reason: str, method: str, path: str, proxy: str | None, *, status: int | None
) -> errors.ServiceProxyError:
    """Report that the proxy caused the failure.

    :param status: HTTP status that the proxy itself answered, or None.
    """
    return errors.ServiceProxyError(
        f"the proxy {_shown(proxy)} did not pass the request on: {reason}",
        method=method,
        path=path,
        status=status,
        hint="Check the connection's extra 'proxies' and the proxies of the environment",
    )


def _shown(proxy: str | None) -> str:
    """The address of a proxy without its user and password."""
    scheme, separator, rest = (proxy or "").rpartition("://")
    address = rest.rpartition("@")[2].partition("/")[0]
    return f"{scheme}{separator}{address}" if address else "of the settings"


def _was_sent(error: requests.ConnectionError) -> bool:
    cause = error.args[0] if error.args else None
    return not isinstance(getattr(cause, "reason", cause), _NO_CONNECTION)


def _root_cause(error: BaseException) -> str:
    """The innermost message, without the URL and the object reprs around it."""
    cause = _innermost(error)
    text = re.sub(r"<[^>]*>:?\s*|\w*Connection(Pool)?\([^)]*\):\s*", "", str(cause))
    return one_line(text) or type(cause).__name__


def _innermost(error: BaseException) -> BaseException:
    inner: object = getattr(error, "reason", None)
    if not isinstance(inner, BaseException):
        inner = next((argument for argument in reversed(error.args) if isinstance(argument, BaseException)), None)
    return _innermost(inner) if isinstance(inner, BaseException) else error
