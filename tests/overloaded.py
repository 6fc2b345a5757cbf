"""A service that refuses a share of the requests, and asks to come back in a distant future."""

from __future__ import annotations

import random
import threading

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_service.simulator import ServiceSimulator

FAR_DATE = "Fri, 31 Dec 2100 23:59:59 GMT"


def refuse_some(simulator: ServiceSimulator, share: float) -> threading.Event:
    """Answer a share of the requests, chosen at random, with 429, until the event is set."""
    chance, over = random.Random(51), threading.Event()

    def layer(app: ASGIApp) -> ASGIApp:
        async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
            refusal = JSONResponse({"message": "Too many requests"}, 429, {"Retry-After": FAR_DATE})
            is_refused = not over.is_set() and chance.random() < share
            await (refusal if is_refused else app)(scope, receive, send)

        return refusing

    simulator.wrap(layer)
    return over
