"""Real servers for the tests: installed once in a cache folder, started on loopback ports, gone afterwards."""

from __future__ import annotations

from .errors import LiveServerError
from .generation import GENERATIONS, NEWEST, Generation
from .live_server import LiveServer

__all__ = ["GENERATIONS", "NEWEST", "Generation", "LiveServer", "LiveServerError"]
