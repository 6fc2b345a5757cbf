"""What the simulator listens to: its socket, and requests in both forms that HTTP/1.1 allows."""

from __future__ import annotations

import socket
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send


def listen(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket.

    :param port: 0 picks a free one.
    :raises OSError: the port is taken, or the host is not an address of this machine.
    """
    # With the protocol given, asyncio turns off Nagle's algorithm, which would cost 40 ms per request.
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


class AddressLayer:
    """ASGI layer that removes the address of the server from the path of a request that was sent as to a proxy.

    uvicorn itself does so only if httptools is installed, which Airflow 2.11 does without.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["raw_path"].startswith((b"http://", b"https://")):
            _scheme, _, _host, *path = scope["raw_path"].split(b"/", 3)
            raw_path = b"/" + b"".join(path)
            scope = {**scope, "raw_path": raw_path, "path": unquote(raw_path.decode("latin-1"))}
        await self._app(scope, receive, send)
