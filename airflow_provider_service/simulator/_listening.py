"""The socket on which the simulator listens."""

from __future__ import annotations

import socket


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
