"""One exchange with the server: send a request and receive its whole answer, within limits of time and size.

The answer may be one event of a stream, which is read while it arrives. An exchange that ends without a whole answer
raises the exception that names its failure.
"""

from __future__ import annotations

import codecs
import io
import json
import logging
import re
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPException
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import requests
from pydantic_core import from_json
from requests.utils import default_user_agent, requote_uri, select_proxy
from urllib3.exceptions import (
    ClosedPoolError,
    HTTPError,
    LocationValueError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
)

from airflow_provider_service import __version__
from airflow_provider_service.client import errors
from airflow_provider_service.client._config import DEFAULT_PORTS, ServiceConfig
from airflow_provider_service.client._http.connections import Deadline, TimedAdapter, ending_by
from airflow_provider_service.client._http.redaction import HiddenText, masked
from airflow_provider_service.client._values import is_too_deep, one_line

log = logging.getLogger(__name__)

#: Redirects that one call follows at most.
MAX_REDIRECTS = 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_READ_AT_ONCE = 64 * 1024
MEBIBYTE = 2**20
EVENT_STREAM = "text/event-stream"
#: The service answers a call with one event; others announce progress, often for as long as an execution takes.
MAX_EVENTS = 100_000
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
# Decoding takes so long that a large answer blocks for seconds to hours, and no time limit applies to it.
_SLOW_CHARSETS = frozenset({"idna", "punycode"})

# Everything that connecting, sending and reading can raise, whatever a server answers.
_FAILURES = (HTTPError, HTTPException, OSError, ValueError, LookupError)
# The other side closed a TLS connection, which does not show whether it had read a request. Other errors of TLS are
# those of a handshake: our connections report the later ones as lost.
_TLS_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
# There was no connection on which a request could have been sent.
_NO_CONNECTION = (ClosedPoolError, NewConnectionError, ProxyError)
# The base URL was checked when it was configured, so an invalid address can only be that of the proxy.
_BAD_PROXY = (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, LocationValueError)
_CHECK_ADDRESS = "Check host and port of the connection, and that the service runs and can be reached from here"
_TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: (\d{3})")

#: Whether the data of an event is the answer to a call.
IsAnswer = Callable[[bytes], bool]
#: The class of an error, its reason, and a hint.
Failure = tuple[type[errors.ServiceApiError], str, str | None]


class Call(NamedTuple):
    """A call, as errors name it, and as far as it determines what a refusal means."""

    method: str
    path: str
    operation: str = ""  # of the API: the path with {} for each id
    scope: str | None = None

    def error(self, failure: Failure, **facts: Any) -> errors.ServiceApiError:
        kind, reason, hint = failure
        return kind(reason, method=self.method, path=self.path, hint=hint, **facts)


class Answer:
    def __init__(self, status_code: int, headers: Mapping[str, str], content: bytes) -> None:
        self.status_code, self.headers, self.content = status_code, headers, content

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @cached_property
    def text(self) -> str:
        return self.beginning(len(self.content))

    def beginning(self, size: int) -> str:
        """The first bytes of the body as text: in the stated encoding, or else in UTF-8, or else in Latin-1."""
        stated = _CHARSET.search(self.headers.get("Content-Type", ""))
        # If the body is truncated, half a character at its end does not indicate another encoding.
        strictness = "strict" if size >= len(self.content) else "ignore"
        for charset in (stated[1] if stated else "utf-8", "utf-8"):
            try:
                if codecs.lookup(charset).name in _SLOW_CHARSETS:
                    continue
                return _without_surrogates(self.content[:size].decode(charset, strictness))
            except (LookupError, ValueError):
                continue
        return self.content[:size].decode("latin-1")

    def json(self) -> Any:
        try:
            return self._value
        except RecursionError:
            raise ValueError("nested too deeply") from None

    @cached_property
    def _value(self) -> Any:
        try:
            return from_json(self.content, allow_inf_nan=False)
        except ValueError:
            pass  # it may still be JSON, in another encoding or with half a surrogate pair
        try:
            value = json.loads(self.content)
        except UnicodeDecodeError:
            value = json.loads(self.text)
        if is_too_deep(value):
            raise ValueError("nested too deeply")
        return json.loads(_without_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False)))


def _without_surrogates(text: str) -> str:
    """Replace each half of a surrogate pair, because it could not be encoded."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Session(requests.Session):
    """Safe to use from several threads. The first request to an origin reads its proxies and CA bundles."""

    def __init__(self, config: ServiceConfig) -> None:
        super().__init__()
        self._config = config
        self.requests_sent = 0
        self._count_lock = threading.Lock()
        self._keys = tuple(map(HiddenText, config.keys))
        self._settings_of: dict[tuple[str, str | None, int | None], dict[str, Any]] = {}
        self.auth = lambda request: request  # otherwise requests looks for the host in ~/.netrc
        self.headers["Accept"] = "application/json"
        products = (f"airflow-provider-service/{__version__}", config.application, default_user_agent())
        self.headers["User-Agent"] = " ".join(filter(None, products))
        adapter = TimedAdapter(pool_connections=4, pool_maxsize=32)
        self.mount("http://", adapter)
        self.mount("https://", adapter)

    def exchange(
        self,
        request: requests.PreparedRequest,
        call: Call,
        timeout: float | None,
        *,
        follow: bool,
        is_answer: IsAnswer | None = None,
    ) -> Answer:
        """Send a request and read the whole answer, within ``timeout`` seconds with redirects.

        :param follow: follow redirects within the origin, with the key; otherwise a redirect is an error.
        :param is_answer: recognises the event that is the answer, if the server sends an event stream. Reading ends
            with that event. The answer is empty if there is no such event.
        """
        deadline = Deadline(timeout or self._config.timeout)
        for _ in range(MAX_REDIRECTS):
            answer = self._exchange_once(request, call, deadline, is_answer)
            target = self._redirect_of(answer, request.url or "", call, follow)
            if target is None:
                log.debug("%s %s answered %s", call.method, call.path, answer.status_code)
                return answer
            request = request.copy()
            request.url = target
            request.headers.pop("Cookie", None)
            request.prepare_cookies(self.cookies)
        raise call.error((errors.ServiceRedirectError, f"redirected more than {MAX_REDIRECTS} times", None))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Leave redirects to :meth:`exchange`: requests would send the key elsewhere and read bodies without limit."""

    def _exchange_once(
        self, request: requests.PreparedRequest, call: Call, deadline: Deadline, is_answer: IsAnswer | None
    ) -> Answer:
        url = request.url or ""
        settings = self._settings(url)
        proxy = select_proxy(url, settings["proxies"])
        if proxy and not _names_host(proxy):  # requests raises an unrelated error for it
            raise bad_proxy(proxy)
        with self._count_lock:
            self.requests_sent += 1
        try:
            with ending_by(deadline):
                response = self.send(request, timeout=(self._config.connect_timeout, deadline.seconds), **settings)
                answer = Answer(response.status_code, response.headers, b"")
                with closing(response):
                    parts = self._parts(response, call)
                    if is_answer and answer.content_type == EVENT_STREAM:
                        answer.content = next(filter(is_answer, islice(event_data(parts), MAX_EVENTS)), b"")
                    else:
                        answer.content = b"".join(parts)
        except _FAILURES as error:
            failed = failure_to_answer(error, call, self._config, timeout=deadline.seconds, proxy=proxy)
        else:
            if response.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED and proxy and url.startswith("http:"):
                raise proxy_error(str(response.reason), call, proxy, status=response.status_code)
            return answer
        # Raised outside the handler, so that the error's context keeps no frames that hold the request's headers.
        raise failed

    def _settings(self, url: str) -> dict[str, Any]:
        config, origin = self._config, _origin(url)
        if origin not in self._settings_of:  # requests goes through the whole environment each time
            own = config.proxy_addresses
            chosen = select_proxy(url, own)
            if chosen is not None:
                own[urlsplit(url).scheme] = chosen  # the environment's proxy for the scheme would go before "all"
            settings = self.merge_environment_settings(url, own, True, config.verify, config.cert)
            proxies = {scheme: HiddenText(address) for scheme, address in settings["proxies"].items()}
            self._settings_of[origin] = {**settings, "proxies": proxies}
        return self._settings_of[origin]

    def _parts(self, response: requests.Response, call: Call) -> Iterator[bytes]:
        size, limit = 0, self._config.max_answer_mib * MEBIBYTE
        for part in response.iter_content(_READ_AT_ONCE):
            size += len(part)
            if size > limit:
                too_large = (
                    errors.ServiceAnswerTooLargeError,
                    f"the answer is larger than {self._config.max_answer_mib} MiB, so it was not read to its end, and "
                    "was discarded",
                    "Read less at a time (a smaller page_size, executions without data), or raise the connection's "
                    "extra 'max_answer_mib'",
                )
                raise call.error(too_large, status=response.status_code)
            yield part

    def _redirect_of(self, answer: Answer, url: str, call: Call, follow: bool) -> str | None:
        location = answer.headers.get("Location")
        if location is None or answer.status_code not in _REDIRECTS:
            return None
        try:
            target = urljoin(url, requote_uri(location.encode("latin-1").decode()))
            if follow and _origin(target) == _origin(url):
                return target
        except ValueError:
            target = "an address that cannot be read"
        shown = one_line(masked(target.partition("?")[0], *self._keys))
        not_followed = (
            errors.ServiceRedirectError,
            f"redirected to {shown}; only reads follow a redirect, and only within the same origin",
            "Set the connection's host to the final address of the service",
        )
        raise call.error(not_followed, status=answer.status_code)


def _names_host(proxy: str) -> bool:
    try:
        return bool(urlsplit(proxy if "://" in proxy else f"//{proxy}").hostname)
    except ValueError:
        return False


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)


def event_data(parts: Iterable[bytes]) -> Iterator[bytes]:
    data: list[str] = []
    for line in chain(_lines(parts), [""]):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:"))
        elif not line and data:
            yield "\n".join(data).encode()
            data = []


def _lines(parts: Iterable[bytes]) -> Iterator[str]:
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True)
    begun: list[str] = []
    for part in parts:
        first, *others = decoder.decode(part).split("\n")
        begun.append(first)
        for line in others:
            yield "".join(begun)
            begun = [line]
    yield "".join([*begun, decoder.decode(b"", final=True).rstrip("\n")])


def failure_to_answer(
    error: Exception, call: Call, config: ServiceConfig, *, timeout: float, proxy: str | None
) -> Exception:
    inner, cause = _innermost(error), _root_cause(error)
    if isinstance(error, _BAD_PROXY):
        return bad_proxy(proxy)
    if isinstance(error, requests.exceptions.ProxyError):
        refused = _TUNNEL_REFUSED.search(str(inner))
        return proxy_error(cause, call, proxy, status=int(refused[1]) if refused else None)
    through = f" through the proxy {_shown(proxy)}" if proxy else ""
    kind: type[errors.ServiceApiError]
    hint = None
    if isinstance(error, requests.ConnectTimeout):
        seconds = min(config.connect_timeout, timeout)
        kind, hint = errors.ServiceUnreachableError, _CHECK_ADDRESS
        reason = f"no connection to {config.base_url}{through} within {seconds:g} s"
    elif isinstance(error, requests.Timeout) or isinstance(inner, (TimeoutError, ReadTimeoutError)):
        kind = errors.ServiceTimeoutError
        reason = f"the whole answer did not arrive within the timeout of {timeout:g} s"
    elif isinstance(error, requests.exceptions.SSLError) and not isinstance(inner, _TLS_ENDED):
        kind, hint = errors.ServiceTlsError, "Check the scheme of the host and the extra 'verify'"
        reason = f"TLS failed with {config.base_url}{through}: {cause}"
    elif isinstance(error, requests.ConnectionError) and not _may_have_been_sent(error):
        kind, hint = errors.ServiceUnreachableError, _CHECK_ADDRESS
        reason = f"{config.base_url} is not reachable{through}: {cause}"
    elif isinstance(error, (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        kind = errors.ServiceConnectionLostError
        reason = f"the connection broke before the whole answer arrived: {cause}"
    elif isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return errors.ServiceConfigError(f"the extras 'verify' and 'cert' cannot be used: {error}; nothing was sent")
    else:
        is_garbled = isinstance(error, requests.exceptions.ContentDecodingError)
        kind = errors.ServiceUnreadableResponseError if is_garbled else errors.ServiceUnexpectedResponseError
        reason = f"the answer cannot be read: {type(error).__name__}"
    return call.error((kind, reason, hint))


def bad_proxy(proxy: str | None) -> errors.ServiceConfigError:
    return errors.ServiceConfigError(
        f"the proxy {_shown(proxy)} cannot be used: its address is not valid, or a package for it is missing; see the "
        "connection's extra 'proxies' and the proxies of the environment; nothing was sent"
    )


def proxy_error(reason: str, call: Call, proxy: str | None, *, status: int | None) -> errors.ServiceApiError:
    hint = "Check the connection's extra 'proxies' and the proxies of the environment"
    reason = f"the proxy {_shown(proxy)} did not pass the request on: {reason}"
    return call.error((errors.ServiceProxyError, reason, hint), status=status)


def _shown(proxy: str | None) -> str:
    """The address of a proxy without its user and password."""
    scheme, separator, address = (proxy or "").rpartition("://")
    address = address.rpartition("@")[2].partition("/")[0]
    return f"{scheme}{separator}{address}" if address else "of the settings"


def _may_have_been_sent(error: requests.ConnectionError) -> bool:
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
