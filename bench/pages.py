"""Measure what the pages in Airflow weigh, how soon they are seen, and what they cost: ``python -m bench.pages``.

It starts the deployment of ``make test-stack`` and a browser, and prints tables for docs/benchmarks.md.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_service._core.pages import rendering
from bench.measuring import spread
from tests.stack.airflow_api import AirflowApi
from tests.stack.browser import Browser
from tests.stack.deployment import Deployment
from tests.stack.pages import Started, executions_in_every_state
from tests.stack.simulated import SimulatedService

from .triggerer import ROOT, say

ROUNDS = 7
VIEWERS = (0, 1, 5)
SETTLING_SECONDS, SECONDS = 5.0, 60.0
COSTS = "| viewers | requests to Airflow a minute | requests to the service a minute | % of a core of the API server |"
#: What shows that a tab has its content: an element of Airflow's page, or of the page in the frame.
TABS = {
    "Logs": ("", "[data-testid='virtualized-list'] > *"),
    "Details": ("/details", "table time"),
    "Service execution": ("/plugin/service_execution", "#view h1"),
}
# Runs in every document before its own scripts, and notes when the content was drawn.
_WATCH = """
if (window === window.parent) {
  const find = (selector) => {
    const own = document.querySelector(selector);
    if (own) return own;
    const frame = document.querySelector("iframe");
    const inner = frame && frame.contentDocument && frame.contentDocument.querySelector(selector);
    return inner && frame.contentWindow.performance.getEntriesByName("first-contentful-paint").length ? inner : null;
  };
  const look = () => {
    const selector = sessionStorage.getItem("watched");
    if (selector && find(selector)) requestAnimationFrame(() => { window.seenAfter = performance.now(); });
    else requestAnimationFrame(look);
  };
  look();
}
"""

_SIZES = """
const [one] = performance.getEntriesByType("navigation");
return [one.encodedBodySize, one.decodedBodySize];
"""


def main() -> None:
    """Measure everything."""
    with _running() as (deployment, service, started):
        settings = deployment.settings
        token = AirflowApi(settings.base_url, "viewer", settings.password).log_in()
        with Browser(settings.base_url, ROOT / ".stack" / "screenshots-of-bench", progress=say) as browser:
            browser.have_session(token)
            _print_weights(browser, started)
            _print_times(browser, started)
            _print_costs(browser, deployment, service, started)


@contextmanager
def _running() -> Iterator[tuple[Deployment, SimulatedService, Started]]:
    folder = ROOT / ".stack" / "bench"
    dags = [ROOT / "tests" / "stack" / "dags"]
    with (
        SimulatedService() as service,
        Deployment(folder, dags, concurrency=4, progress=say) as deployment,
        service.client() as client,
    ):
        deployment.api.set_connection(service.connection())
        with executions_in_every_state(deployment.api, client) as started:
            yield deployment, service, started


def _print_weights(browser: Browser, started: Started) -> None:
    print("| what | bytes | compressed, as it is sent |\n| --- | --- | --- |")
    for task_id in started.executions:
        browser.open(started.own_page(task_id))
        sent, whole = browser.run(_SIZES)
        print(f"| page of a task that {task_id} | {whole:,} | {sent:,} |")
    for name in rendering.ASSETS:
        print(f"| `{name}` | {len(rendering.asset(name)):,} | {len(gzip.compress(rendering.asset(name), 5)):,} |")


def _print_times(browser: Browser, started: Started) -> None:
    browser.before_scripts(_WATCH)
    taken: dict[str, list[float]] = {name: [] for name in TABS}
    for number in range(ROUNDS + 1):  # the first fills the caches
        for name, (path, selector) in TABS.items():
            browser.open("/static/pin_32.png")
            browser.run("sessionStorage.setItem('watched', arguments[0])", selector)
            browser.open(started.page("fails") + path)
            milliseconds = browser.wait_for("return window.seenAfter")
            if number:
                taken[name].append(milliseconds / 1000)
    print("\n| tab | seconds until its content is seen |\n| --- | --- |")
    for name, values in taken.items():
        print(f"| {name} | {spread(values)} |")


def _print_costs(browser: Browser, deployment: Deployment, service: SimulatedService, started: Started) -> None:
    print(f"\n{COSTS}\n|{' --- |' * (COSTS.count('|') - 1)}")
    server = deployment["api-server"]
    for viewers in VIEWERS:
        with browser.windows(viewers, started.own_page("runs")) as asked:
            time.sleep(SETTLING_SECONDS)
            before = asked(), service.count_requests(), server.usage()[0], time.monotonic()
            time.sleep(SECONDS)
            after = asked(), service.count_requests(), server.usage()[0], time.monotonic()
        polls, reads, cpu, seconds = (late - early for early, late in zip(before, after, strict=True))
        print(f"| {viewers} | {60 * polls / seconds:.0f} | {60 * reads / seconds:.0f} | {100 * cpu / seconds:.1f} |")


if __name__ == "__main__":
    main()
