"""Send requests: address, key, encoding, time limits, retries and errors. Nothing else in the package does."""

from __future__ import annotations

import email.utils
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import requests
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._config import ServiceConfig
from airflow_provider_service.client._http import answers, start_answers
from airflow_provider_service.client._http.encoding import (
    FilePart,
    MultipartBody,
    Query,
    encode_query,
    fill_path,
    json_body,
    segment,
    text_of,
)
from airflow_provider_service.client._http.exchange import MEBIBYTE, Answer, Call, Session
from airflow_provider_service.client._http.redaction import HiddenText
from airflow_provider_service.client._models import METHODS_WITHOUT_BODY, WebhookAnswer
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceApiError, ServiceConfigError, ServiceError, ServiceInputError

log = logging.getLogger(__name__)

#: The longest pause between two tries of a call, even if the service asks for more by ``Retry-After``.
MAX_RETRY_AFTER = 120.0
#: A workflow goes live shortly after it is activated; if it is not live by then, it is not active.
LIVE_SECONDS = 15.0
MCP_PATH = "/mcp-server/http"
# Methods that, when repeated, leave the server in the same state as a single call.
_REPEATABLE_METHODS = frozenset({"GET", "PUT", "DELETE"})

#: An error that is normal for a moment is worth a line only if it lasts longer than this.
QUIET_TRIES = 3
_exponential_jitter = wait_random_exponential(multiplier=0.5, max=20)


class Transport:
    """Sends requests to one server. Safe to use from several threads."""

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self._key = HiddenText(config.api_key.get_secret_value())
        self._start_seconds = min(config.retry_deadline, LIVE_SECONDS)
        self.server_clock = ServerClock()
        #: When a call of the API last succeeded, by the monotonic clock.
        self.succeeded_at = -math.inf
        #: Level at which failed tries of API calls are logged.
        self.retry_level = logging.WARNING
        self._session = Session(config)

    @property
    def requests_sent(self) -> int:
        return self._session.requests_sent

    def close(self) -> None:
        self._session.close()

    def call(
        self,
        method: str,
        path: str,
        *ids: str | int,
        scope: str | None = None,
        query: Query | None = None,
        body: Any = None,
        files: Mapping[str, Any] | None = None,
        repeatable: bool | None = None,
        timeout: float | None = None,
        binary: bool = False,
    ) -> Any:
        """Send one API request, repeat it while that is safe and may help, and return the decoded answer.

        :param path: path below the API root, with ``{}`` for each id, e.g. ``/workflows/{}/activate``.
        :param scope: scope that the operation needs, named when the key lacks it.
        :param body: JSON body, or the text fields that go with ``files``, the parts of a multipart body.
        :param repeatable: whether a second call does no harm; by default true for GET, PUT and DELETE.
        :param timeout: seconds within which the whole answer of one try must arrive, instead of the connection's
            setting. The last try begins before the connection's ``retry_deadline``, and can end this much later.
        :param binary: return the bytes of the answer instead of decoding JSON.
        """
        if not (isinstance(method, str) and method.isascii() and method.isalpha()):
            raise ServiceInputError(f"{shown(method)} is not an HTTP method; nothing was sent")
        method = method.upper()
        target = fill_path(path, ids)
        _check_timeout(timeout)
        data = json_body(body) if files is None and body is not None else body
        headers = {self.config.key_header: self._key}
        request = self._prepare(method, self.config.api_root + target + encode_query(query), headers, data, files)
        repeatable = method in _REPEATABLE_METHODS if repeatable is None else repeatable
        call = Call(method, target, path, scope)

        def send() -> Any:
            sent = clock().now()
            answer = self._session.exchange(request, call, timeout, follow=method == "GET")
            self.server_clock.learn(answer.headers.get("Date"), sent, clock().now())
            value = answers.decode(answer, call, secret=self._key, binary=binary)
            self.succeeded_at = clock().monotonic()
            return value

        return _retrying(repeatable, self.config.retry_deadline, level=self.retry_level)(send)

    def call_webhook(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        payload: Any,
        timeout: float,
        files: Sequence[FilePart] = (),
        stopped: threading.Event | None = None,
        may_repeat: Callable[[ServiceError], bool] | None = None,
    ) -> WebhookAnswer:
        """Call a production webhook, without the key; repeat the call only while nothing has run.

        :param path: path of the webhook, as given in its node.
        :param payload: JSON body; query parameters if the method has no body; text fields if there are files.
        :param stopped: set by the caller to stop further tries.
        :param may_repeat: asked after a try that seems to have run nothing: whether it may be repeated.
        """
        _check_timeout(timeout)
        has_body = method not in METHODS_WITHOUT_BODY
        target = "/webhook/" + "/".join(map(segment, path.split("/")))
        query = "" if has_body else encode_query(payload)
        data = self._form(payload, files) if files else self._limited_body(payload) if has_body else None
        headers = start_answers.checked_headers(headers)
        request = self._prepare(method, self.config.webhook_root + target + query, headers, data)
        call = Call(method, target)

        def send() -> WebhookAnswer:
            answer = self._session.exchange(request, call, timeout, follow=False)
            return start_answers.read_answer(answer, call, headers)

        return _retrying(False, self._start_seconds, stopped, may_repeat)(send)

    def call_mcp(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        repeatable: bool = False,
        timeout: float | None = None,
        stopped: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Call a tool of the MCP endpoint with the endpoint's own key."""
        _check_timeout(timeout)
        key = self.config.mcp_api_key
        if key is None:
            raise ServiceConfigError(
                f"the connection's extra 'mcp_api_key' is missing: {start_answers.CREATE_KEY}; nothing was sent"
            )
        secret = HiddenText(key.get_secret_value())
        headers = {"Authorization": HiddenText(f"Bearer {secret}"), "Accept": "application/json, text/event-stream"}
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": start_answers.REQUEST_ID, "method": "tools/call", "params": params}
        request = self._prepare("POST", self.config.base_url + MCP_PATH, headers, self._limited_body(body))
        call = Call("POST", MCP_PATH)

        def send() -> dict[str, Any]:
            answer = self._session.exchange(request, call, timeout, follow=False, is_answer=start_answers.is_answer)
            return start_answers.read_result(answer, call, secret)

        return _retrying(repeatable, self._start_seconds, stopped)(send)

    def _form(self, payload: Mapping[str, Any], files: Sequence[FilePart]) -> MultipartBody:
        size, limit = sum(part.size for part in files), self.config.max_files_mib
        _check_size(f"files have {size:,}", size, limit, "N8N_FORMDATA_FILE_SIZE_MAX", "max_files_mib")
        return MultipartBody({name: text_of(value) for name, value in payload.items() if value is not None}, files)

    def _limited_body(self, payload: Any) -> bytes:
        body = json_body(payload)
        # The server would answer as if the workflow had been executed and had failed.
        limit = self.config.max_payload_mib
        _check_size(f"payload has {len(body):,}", len(body), limit, "N8N_PAYLOAD_SIZE_MAX", "max_payload_mib")
        return body

    def probe(self, path: str) -> int | None:
        """The HTTP status of a page of the server outside the API; None if no answer arrived."""
        answer = self.page(path)
        return None if answer is None else answer.status_code

    def page(self, path: str) -> Answer | None:
        """Request a page below the base URL, outside the API and without the key; None if no answer arrived."""
        request = self._prepare("GET", self.config.base_url + path, {})
        try:
            return self._session.exchange(request, Call("GET", path), None, follow=False)
        except ServiceError:
            return None

    def _prepare(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: Any = None,
        files: Mapping[str, Any] | None = None,
    ) -> requests.PreparedRequest:
        if isinstance(data, MultipartBody):
            headers = {"Content-Type": data.content_type, **headers}
        if isinstance(data, bytes):
            headers = {"Content-Type": "application/json", **headers}
        try:
            return self._session.prepare_request(
                requests.Request(method, url, headers=dict(headers), data=data, files=files)
            )
        except ValueError as error:
            reason = type(error).__name__
        raise ServiceInputError(f"the request cannot be written ({reason}); nothing was sent")


def _retrying(
    repeatable: bool,
    seconds: float,
    stopped: threading.Event | None = None,
    may_repeat: Callable[[ServiceError], bool] | None = None,
    level: int = logging.WARNING,
) -> Retrying:
    """Retry for some seconds from now, until the event is set, or until the caller does not allow it.

    If the server asks for a pause that is longer than what is left, half of that is waited: a server that refuses a
    part of the requests often accepts the next one.
    """
    stopped, end = stopped or threading.Event(), clock().monotonic() + seconds

    def worth_repeating(error: BaseException) -> bool:
        if not isinstance(error, ServiceError) or not error.repeat_may_help:
            return False
        return (repeatable or error.not_processed) and (may_repeat is None or may_repeat(error))

    def pause(state: RetryCallState) -> float:
        asked = min(getattr(_error_of(state), "retry_after", None) or 0.0, MAX_RETRY_AFTER)
        left = max(end - clock().monotonic(), 0.0)
        # The jitter also limits the rate if the server asks for a retry without delay.
        return max(_exponential_jitter(state), asked if asked < left else left / 2)

    def sleep(pause: float) -> None:
        clock().wait(stopped, pause)

    return Retrying(
        retry=retry_if_exception(worth_repeating),
        wait=pause,
        # Tenacity's own conditions always use the system's clock.
        stop=lambda state: stopped.is_set() or clock().monotonic() + state.upcoming_sleep >= end,
        sleep=sleep,
        before_sleep=partial(_log_retry, set(), level),
        reraise=True,
    )


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise ServiceInputError(f"timeout must be a number of seconds above 0, not {shown(timeout)}; nothing was sent")


def _check_size(what: str, size: int, mebibytes: float, variable: str, extra: str) -> None:
    if size > mebibytes * MEBIBYTE:
        raise ServiceInputError(
            f"the {what} bytes, but the server accepts {mebibytes:g} MiB (its {variable}; the connection's extra "
            f"{extra!r}); nothing was sent"
        )


def _log_retry(said: set[object], level: int, state: RetryCallState) -> None:
    """Log a failed try, and its whole reason unless an earlier line says the same. A momentary error gets one line."""
    pause = state.next_action.sleep if state.next_action else 0.0
    error = _error_of(state)
    text = str(error)
    # The pause until a date is another one each time.
    key = (error.status, error.reason, error.server_message) if isinstance(error, ServiceApiError) else text
    if isinstance(error, ServiceError) and error.is_momentary:
        level = logging.INFO if state.attempt_number > QUIET_TRIES and key not in said else logging.DEBUG
    reason = f"{text.partition(': ')[0]}: the same" if key in said else text  # it begins with the method and the path
    if level > logging.DEBUG:
        said.add(key)
    log.log(level, "%s. Try %d failed; trying again in %.1f s", reason, state.attempt_number, pause)


def _error_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


class ServerClock:
    """Learns the offset of the server's clock from the ``Date`` header of its answers.

    Some reverse proxies set that header by their own clock. A date counts whole seconds and was written at some time
    between the request and its answer, so each answer only gives a range for the offset. Several answers together
    narrow it down to a fraction of a second, and slow answers do no harm. When a clock is set, the old values no longer
    fit and are discarded.
    """

    def __init__(self) -> None:
        self._bounds: tuple[float, float] | None = None

    @property
    def offset(self) -> timedelta | None:
        """The server's time minus ours, to about a second; None before the first dated answer."""
        bounds = self._bounds
        return timedelta(seconds=sum(bounds) / 2) if bounds else None

    @property
    def certain_offset(self) -> timedelta | None:
        """The part of the offset that is certain, however slow the answers were; 0 if the clocks may agree."""
        if self._bounds is None:
            return None
        least, most = self._bounds
        return timedelta(seconds=max(least, 0.0) + min(most, 0.0))

    def now(self) -> datetime:
        """Return the date and time by the server's clock, or by ours before the first dated answer."""
        return clock().utcnow() + (self.offset or timedelta())

    def learn(self, date: str | None, sent: float, answered: float) -> None:
        """Take the date of an answer into account, with our times of the request and of the answer's headers."""
        try:
            written = email.utils.parsedate_to_datetime(date or "")
            if not 1970 <= written.year < 9000:  # no clock's date, and arithmetic could exceed Python's range
                return
            second = written.timestamp()
        except (TypeError, ValueError, IndexError, OverflowError):
            return
        least, most = second - answered, second + 1 - sent
        bounds = self._bounds
        if bounds and least <= bounds[1] and bounds[0] <= most:
            least, most = max(least, bounds[0]), min(most, bounds[1])
        if least <= most:  # not if our own clock was set back in the meantime
            self._bounds = least, most
