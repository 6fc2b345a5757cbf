"""Measure what the pages in Airflow weigh, how soon they are seen, and what they cost: ``python -m bench.pages``.

It starts the deployment of ``make test-stack`` and a browser, and prints tables for docs/benchmarks.md.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.drawing import MAX_NODES
from airflow_provider_service.simulator._samples import WITH_ID, webhook
from bench.measuring import spread
from tests.pages.conftest import step
from tests.stack.airflow_api import AirflowApi
from tests.stack.browser import Browser
from tests.stack.deployment import Deployment
from tests.stack.pages import DAG, ENDINGS, Started, executions_in_every_state
from tests.stack.simulated import SimulatedService
from tests.stack.workflows import path

from .triggerer import ROOT, say

ROUNDS = 7
VIEWERS = (0, 1, 5)
SETTLING_SECONDS, SECONDS = 5.0, 60.0
COSTS = "| viewers | requests to Airflow a minute | requests to the service a minute | % of a core of the API server |"
LARGE, NODES_IN_A_ROW = f"n8n execution with {MAX_NODES} nodes", 20
#: What shows that a tab has its content: an element of Airflow's page, or of the page in the frame.
TABS = {
    "Logs": ("", "[data-testid='virtualized-list'] > *"),
    "Details": ("/details", "table time"),
    "n8n execution": ("/plugin/service_execution", "#view h1"),
    LARGE: ("/plugin/service_execution", "#view h1"),
}
STEPS = 60
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

# Enlarges the drawing and makes it smaller again, in turn, and notes how long each step takes until it can be seen.
_ZOOM = """
const [out, enlarge] = ["out", "in"].map((name) => document.querySelector(`[data-do=${name}]`)), taken = [];
const step = () => {
  const begin = performance.now();
  (taken.length % 2 ? out : enlarge).click();
  requestAnimationFrame(() => setTimeout(() => {
    taken.push((performance.now() - begin) / 1000);
    if (taken.length < arguments[0]) step(); else window.taken = taken;
  }));
};
step();
"""

_SIZES = """
const [one] = performance.getEntriesByType("navigation");
return [one.encodedBodySize, one.decodedBodySize];
"""


def main() -> None:
    """Measure everything."""
    with _running() as (deployment, service, started, large):
        settings = deployment.settings
        token = AirflowApi(settings.base_url, "viewer", settings.password).log_in()
        with Browser(settings.base_url, ROOT / ".stack" / "screenshots-of-bench", progress=say) as browser:
            browser.have_session(token)
            _print_weights(browser, started, large)
            _print_times(browser, started, large)
            _print_zoom(browser, large)
            _print_costs(browser, deployment, service, started)


@contextmanager
def _running() -> Iterator[tuple[Deployment, SimulatedService, Started, Started]]:
    """Airflow, the service, a run of small workflows in every state, and one of the largest that is drawn."""
    folder = ROOT / ".stack" / "bench"
    dags = [ROOT / "tests" / "stack" / "dags"]
    with (
        SimulatedService() as service,
        Deployment(folder, dags, concurrency=4, progress=say) as deployment,
        service.client() as client,
    ):
        deployment.api.set_connection(service.connection())
        with executions_in_every_state(deployment.api, client) as started:
            yield deployment, service, started, _large(deployment.api, service)


def _large(api: AirflowApi, service: SimulatedService) -> Started:
    """Let all tasks run the largest workflow that is drawn."""
    nodes = [webhook(path(), options={"responseData": WITH_ID})]
    for at in range(1, MAX_NODES):
        column, row = at % NODES_IN_A_ROW, at // NODES_IN_A_ROW
        nodes.append({**step(f"Step {at}", "noOp", column), "position": [220 * column, 160 * row]})
    workflow_id = service.create_workflow("Largest", nodes)
    run_id = api.trigger(DAG, {"workflows": dict.fromkeys(ENDINGS, workflow_id)})
    executions = {}
    for task_id in ENDINGS:
        api.wait_for_task(DAG, run_id, task_id, ["success"])
        executions[task_id] = str(api.wait_for_xcom(DAG, run_id, task_id, "execution_id"))
    return Started(run_id, executions, dict.fromkeys(ENDINGS, workflow_id))


def _print_weights(browser: Browser, started: Started, large: Started) -> None:
    print("| what | bytes | compressed, as it is sent |\n| --- | --- | --- |")
    pages = {f"page of a task that {task_id}": started.own_page(task_id) for task_id in started.executions}
    pages[f"page of one with {MAX_NODES} nodes"] = large.own_page("succeeds")
    for what, page in pages.items():
        browser.open(page)
        sent, whole = browser.run(_SIZES)
        print(f"| {what} | {whole:,} | {sent:,} |")
    for name in rendering.ASSETS:
        print(f"| `{name}` | {len(rendering.asset(name)):,} | {len(gzip.compress(rendering.asset(name), 5)):,} |")


def _print_times(browser: Browser, started: Started, large: Started) -> None:
    browser.before_scripts(_WATCH)
    taken: dict[str, list[float]] = {name: [] for name in TABS}
    for number in range(ROUNDS + 1):  # the first fills the caches
        for name, (tab, selector) in TABS.items():
            browser.open("/static/pin_32.png")
            browser.run("sessionStorage.setItem('watched', arguments[0])", selector)
            browser.open((large if name == LARGE else started).page("fails") + tab)
            milliseconds = browser.wait_for("return window.seenAfter")
            if number:
                taken[name].append(milliseconds / 1000)
    print("\n| tab | seconds until its content is seen |\n| --- | --- |")
    for name, values in taken.items():
        print(f"| {name} | {spread(values)} |")


def _print_zoom(browser: Browser, large: Started) -> None:
    browser.open(large.own_page("succeeds"))
    browser.find("//*[@id='drawing']")
    browser.run(_ZOOM, STEPS)
    taken = browser.wait_for("return window.taken")
    print(f"\nSeconds until {MAX_NODES} nodes are seen in another size: {spread(taken, '.3f')}")


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
