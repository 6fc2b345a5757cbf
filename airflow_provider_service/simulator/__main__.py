"""``python -m airflow_provider_service.simulator``: run the simulated service until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Sequence

from airflow_provider_service.simulator import ServiceSimulator


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the service; prints one JSON line with ``base_url`` and ``api_key`` when it is ready."""
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_service.simulator", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--api-key", help="key with every scope (default: a random one)")
    parser.add_argument("--unlicensed", action="store_true", help="answer 403 for licensed features")
    parser.add_argument("--concurrency-limit", type=int, help="concurrent production runs (default: no limit)")
    parser.add_argument("--boot-seconds", type=float, default=0.0, help="seconds of HTML 404 answers first")
    options = parser.parse_args(arguments)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    simulator = ServiceSimulator(
        host=options.host,
        port=options.port,
        api_key=options.api_key,
        licensed=not options.unlicensed,
        concurrency_limit=options.concurrency_limit,
        boot_seconds=options.boot_seconds,
    )
    try:
        simulator.start()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        parser.exit(1, f"Cannot listen on {options.host}, port {options.port}: {reason}. Choose another --port.\n")
    try:
        print(json.dumps({"base_url": simulator.base_url, "api_key": simulator.api_key}), flush=True)
        stopped.wait()
    finally:
        simulator.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
