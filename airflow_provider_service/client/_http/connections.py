"""Connections on which no step exceeds its time limit, and which are not reused after a long idle time.

The time limit of ``urllib3`` applies to a single read, so an occasional byte can keep a call open forever. Here every
read and every write is limited to the time that is left for the whole exchange.

It would not suffice to check the limit between the parts of a body: a server could still send a status line, a header
or a single part byte by byte, for as long as it likes. ``urllib3`` and ``http.client`` have no public way to limit
these, so this module overrides private names: ``_new_conn``, ``_dns_host``, ``_get_conn``, ``_put_conn``, the
``response_class`` and its ``fp``. That is why ``pyproject.toml`` excludes version 3 of ``urllib3``.
"""

from __future__ import annotations

import errno
import http.client
import io
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._http.redaction import HiddenText

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: The server closes idle connections after about 6 s; a request must not be sent just then.
REUSE_CONNECTION_SECONDS = 4.0
#: The longest timeout that sockets accept, about 23 days.
MAX_SOCKET_SECONDS = 2_000_000.0
_SENT_AT_ONCE = 256 * 1024
# The operating system asks the other side for a sign of life after a minute, and gives it up after another. A call can
# last as long as a run, which would otherwise not end if the server lost power, or if a firewall forgot the connection.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
# TLS 1.3 reports only after the handshake that the server refused the client's certificate.
_CERTIFICATE_REFUSED = re.compile("ALERT.*(CERTIFICATE|UNKNOWN_CA)")


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = min(seconds, MAX_SOCKET_SECONDS)
        self._end = clock().monotonic() + self.seconds

    def left(self) -> float:
        """Seconds that are left; a TimeoutError if there are none."""
        seconds = self._end - clock().monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        return seconds


_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def _current_deadline() -> Deadline:
    return _deadline.get() or Deadline(MAX_SOCKET_SECONDS)


@contextmanager
def ending_by(deadline: Deadline) -> Iterator[None]:
    """Apply a deadline to all that this thread sends and reads; only the system limits resolving a host name."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


class _TimedReader(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw, self._sock, self._deadline = raw, sock, _current_deadline()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._sock.settimeout(self._deadline.left())
        try:
            count = self._raw.readinto(buffer)
        except ssl.SSLError as failure:
            if _CERTIFICATE_REFUSED.search(failure.reason or ""):
                raise
            # Unlike a failed handshake, this does not show that no request has arrived.
            raise ConnectionError(str(failure)) from None
        except TimeoutError as failure:
            if failure.errno == errno.ETIMEDOUT:  # not our time limit: the other side gave no sign of life
                raise ConnectionError(str(failure)) from None
            raise
        self._deadline.left()  # what arrives too late does not count, even if only a replaced clock says so
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), sock))


class _TimedConnection(HTTPConnection):
    response_class = _TimedResponse
    idle_since = 0.0
    _was_made = False

    def connect(self) -> None:
        call = _current_deadline()
        self._was_made = False
        try:
            with ending_by(Deadline(min(self.timeout or MAX_SOCKET_SECONDS, call.left()))):
                super().connect()
        except TimeoutError:
            raise ConnectTimeoutError(self, f"no connection within {self.timeout:g} s") from None
        self._was_made = True

    @property
    def has_connected_to_proxy(self) -> bool:
        """Also once the connection is closed, when ``urllib3`` forgets that a request may have been sent."""
        return self._was_made or super().has_connected_to_proxy

    def _new_conn(self) -> socket.socket:
        # urllib3 would give each of several addresses the full time; here each gets its share of the time that is left.
        name = self._dns_host
        error: Exception = NewConnectionError(self, "the name has no address")
        try:
            addresses = socket.getaddrinfo(name.strip("[]"), self.port, type=socket.SOCK_STREAM)
        except OSError as failure:
            raise NameResolutionError(self.host, self, failure) from failure  # type: ignore[arg-type]
        try:
            for number, (*_, address) in enumerate(addresses):
                self._dns_host = str(address[0])
                self.timeout = _current_deadline().left() / (len(addresses) - number)
                try:
                    connected = super()._new_conn()
                except (NewConnectionError, ConnectTimeoutError) as failure:
                    error = failure
                else:
                    return _limited(connected)
        finally:
            self._dns_host = name
        raise error

    def request(self, *args: Any, **options: Any) -> None:
        """Connect, so that no frame of an error in connecting holds the request's bytes, and then send."""
        if self.sock is None:
            self.connect()
        self.timeout = _current_deadline().left()
        super().request(*args, **options)

    def send(self, data: Any) -> None:
        """Send in parts, because the time limit applies to each part."""
        if self.sock is None or not isinstance(data, bytes):
            super().send(data)
            return
        view = memoryview(data)
        for start in range(0, len(view), _SENT_AT_ONCE):
            self.sock.settimeout(_current_deadline().left())
            super().send(view[start : start + _SENT_AT_ONCE])


def _limited(connected: socket.socket) -> socket.socket:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    try:
        connected.settimeout(_current_deadline().left())
    except TimeoutError:
        connected.close()
        raise
    return connected


class _TimedTlsConnection(_TimedConnection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls: Any = _TimedConnection

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection: Any = super()._get_conn(timeout)
        if not connection.is_closed and clock().monotonic() - connection.idle_since > REUSE_CONNECTION_SECONDS:
            connection.close()
        return connection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.idle_since = clock().monotonic()
        super()._put_conn(conn)


class _TlsPool(_Pool, HTTPSConnectionPool):
    ConnectionCls: Any = _TimedTlsConnection


_POOLS = {"http": _Pool, "https": _TlsPool}


@cache
def _socks_pools() -> dict[str, type[HTTPConnectionPool]]:
    """The pools of connections through a SOCKS proxy, which need the package PySocks."""
    from urllib3.contrib.socks import SOCKSConnection

    class SocksConnection(_TimedConnection, SOCKSConnection):
        def _new_conn(self) -> socket.socket:
            self.timeout = _current_deadline().left()
            return _limited(SOCKSConnection._new_conn(self))

    class TlsSocksConnection(SocksConnection, _TimedTlsConnection):
        pass

    class SocksPool(_Pool):
        ConnectionCls = SocksConnection

    class TlsSocksPool(_TlsPool):
        ConnectionCls = TlsSocksConnection

    return {"http": SocksPool, "https": TlsSocksPool}


class TimedAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = _socks_pools() if proxy.lower().startswith("socks") else _POOLS
        return manager

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        headers: Mapping[str, str] = super().proxy_headers(proxy)
        return {name: HiddenText(value) for name, value in headers.items()}
