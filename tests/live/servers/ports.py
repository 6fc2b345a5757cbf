"""Loopback ports that nobody else takes between two starts."""

from __future__ import annotations

import random
import socket

from .errors import LiveServerError

# Below the ports that systems lend to outgoing connections: during a restart nobody else, not even a client that
# tries to connect to the port, is lent it.
_PORTS = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return a number of free ports, all different.

    :raises LiveServerError: there are none.
    """
    found: list[int] = []
    for port in random.sample(_PORTS, 200):
        if len(found) == count:
            return found
        with socket.socket() as candidate:
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    raise LiveServerError("No free loopback ports.")
