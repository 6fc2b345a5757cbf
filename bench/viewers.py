"""Measure what 50 viewers of the largest execution, and of the longest list, cost Airflow's own requests.

``python -m bench.viewers`` starts Airflow's API server with one process, and a service with an execution that is just
below the limit, and with lists of open executions; both change with every read. One client asks Airflow for task
instances without a pause, in windows without viewers, with those of the execution's tab, with those of the list of
2,000 executions, and with both, which take turns. It takes about eleven minutes, and prints a table for
docs/benchmarks.md.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.queues import Queue
from pathlib import Path
from socket import create_server
from statistics import median
from typing import Any, NamedTuple

import httpx

from airflow_provider_service._core.pages.drawing import MAX_LINES, MAX_NODES
from bench.measuring import spread
from scripts.dag_runner import prepare_home, run_dag

#: The most that a list shows, which is in a module that imports Airflow, and that needs its home before.
MAX_EXECUTIONS = 2_000
ROOT = Path(__file__).resolve().parent.parent
WAITS = ROOT / "tests" / "dags" / "waits" / "waits.py"
MODES = ("poke", "reschedule", "deferrable")
VIEWERS, PAUSE_SECONDS = 50, 3.0
ROUNDS, SETTLING_SECONDS, SECONDS = 7, 8.0, 15.0
RUNS_OF_A_NODE = 60
SPAWN = multiprocessing.get_context("spawn")
TABLE = "| viewers | own requests a second | seconds for one, median | the slowest | % of a core of the server |"
#: What is viewed, by the names of the pages.
VIEWED = {"none": (), "50 of the tab": ("tab",), "50 of the list": ("list",), "50 of each": ("tab", "list")}
#: The numbers of the latest executions of the list, which the service lists as running.
OPEN, LISTED_DAGS, WORKFLOWS = 200, 10, 20


class Seen(NamedTuple):
    """What viewers got."""

    answers: int
    received: int
    slowest: float


def main() -> None:
    """Measure, and print a table."""
    with tempfile.TemporaryDirectory() as folder, _service() as service:
        connection = {"conn_type": "service", "host": service, "password": "key-of-the-bench"}
        os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"] = json.dumps(connection)
        prepare_home(Path(folder), WAITS.parent)
        state, _ = run_dag(WAITS, dict.fromkeys(MODES, "7"))
        if state != "success":
            raise RuntimeError("the sensors did not see the execution")
        fill_list(service)
        with _api_server(Path(folder)) as (process, base_url, token):
            _measure(process, base_url, token, _run_id())


def fill_list(service: str, executions: int = MAX_EXECUTIONS) -> None:
    """Put tasks of ten DAGs into Airflow's database, the latest of which have executions that are open."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from airflow_provider_service._airflow.attempts import EXECUTION_KEY
    from tests.airflow_tables import ATTEMPTS_ARE_INSTANCES, key_in, new_id, xcoms

    now = datetime.now(UTC)
    with create_session() as session:
        session.add(DagBundleModel(name="listed"))
        session.flush()
        more = {"timetable_type": "x"} if hasattr(DagModel, "timetable_type") else {}
        for dag in range(LISTED_DAGS):
            session.add(DagModel(dag_id=f"listed_{dag}", bundle_name="listed", is_paused=True, is_stale=False, **more))
    for number in range(executions):
        dag_id, run_id, workflow = f"listed_{number % LISTED_DAGS}", f"run_{number}", f"w{number % WORKFLOWS}"
        key = {"dag_id": dag_id, "run_id": run_id, "task_id": f"run_orders_{number % 3}", "map_index": -1}
        began = now - timedelta(minutes=7 * (executions - number))
        is_open = number >= executions - OPEN
        states = ("deferred", "deferred", "deferred", "failed") if is_open else ("success",) * 12 + ("failed",)
        told = {
            "execution_id": str(number),
            "workflow_name": f"Sync orders {workflow}",
            "started_at": began.isoformat(),
        }
        if not is_open:
            told["stopped_at"] = (began + timedelta(seconds=20 + number % 37 + 400 * (number % 97 == 0))).isoformat()
        url = f"{service}/workflow/{workflow}/executions/{number}"
        with create_session() as session:
            run = {"dag_id": dag_id, "run_id": run_id, "run_type": "manual", "run_after": began, "start_date": began}
            session.execute(DagRun.__table__.insert().values(state="running", **run))
            run_number = session.scalar(select(DagRun.id).where(DagRun.run_id == run_id))
            own_id, instances = new_id(), TaskInstance.__table__
            row = {**key_in(instances, key), "pool": "default_pool", "pool_slots": 1, "try_number": 1, "id": own_id}
            session.execute(instances.insert().values(**row, state=states[number % len(states)], start_date=began))
            owner = {"task_instance_id": own_id} if ATTEMPTS_ARE_INSTANCES else {**key, "dag_run_id": run_number}
            for name, value in (("_link_ServiceExecutionLink", url), (EXECUTION_KEY, told)):
                session.execute(xcoms().insert().values(**owner, key=name, value=value, timestamp=began))


def _measure(process: int, base_url: str, token: str, run_id: str) -> None:
    own = f"{base_url}/api/v2/dags/waits/dagRuns/{run_id}/taskInstances"
    pages = {
        "tab": f"{base_url}/service-pages/dags/waits/runs/{run_id}/tasks/poke/{{MAP_INDEX}}",
        "list": f"{base_url}/service-pages/executions",
    }
    sizes = {name: len(httpx.get(page, headers=_bearer(token), timeout=60).content) for name, page in pages.items()}
    rates: dict[str, list[float]] = {viewed: [] for viewed in VIEWED}
    times: dict[str, list[float]] = {viewed: [] for viewed in VIEWED}
    cores: dict[str, list[float]] = {viewed: [] for viewed in VIEWED}
    seen: dict[str, list[Seen]] = {name: [] for name in pages}
    for _ in range(ROUNDS):
        for viewed, names in VIEWED.items():
            with ExitStack() as viewers:
                for name in names:
                    viewers.enter_context(_viewers(VIEWERS, pages[name], token, seen[name]))
                time.sleep(SETTLING_SECONDS)
                before = _cpu_seconds(process)
                taken = _ask(own, token)
                cores[viewed].append(100 * (_cpu_seconds(process) - before) / sum(taken))
            rates[viewed].append(len(taken) / sum(taken))
            times[viewed] += taken
    print(f"\n{TABLE}\n|{' --- |' * (TABLE.count('|') - 1)}")
    for viewed, values in rates.items():
        slowest = max(times[viewed])
        row = (spread(values, ".1f"), f"{median(times[viewed]):.3f}", f"{slowest:.2f}", spread(cores[viewed], ".0f"))
        print(f"| {viewed} | {' | '.join(row)} |")
    for viewed in VIEWED:
        lost = _lost(rates["none"], rates[viewed])
        print(f"\nShare of Airflow's own requests that viewers cost, {viewed}: {spread(lost, '.0f')} %.")
    for name, answers in seen.items():
        print(
            f"The {name} has {sizes[name]:,} bytes; a round of {SETTLING_SECONDS + SECONDS:.0f} s gave the viewers "
            f"{spread([one.answers for one in answers], '.0f')} answers of "
            f"{spread([one.received / max(1, one.answers) / 1000 for one in answers], '.1f')} kB as they were sent, "
            f"the slowest after {max(one.slowest for one in answers):.1f} s."
        )


def _lost(without: Sequence[float], with_them: Sequence[float]) -> list[float]:
    return [100 * (1 - second / first) for first, second in zip(without, with_them, strict=True)]


def _ask(url: str, token: str) -> list[float]:
    """Ask again and again; the seconds that each answer took."""
    taken = []
    with httpx.Client(headers=_bearer(token), timeout=60) as client:
        until = time.perf_counter() + SECONDS
        while time.perf_counter() < until:
            begin = time.perf_counter()
            client.get(url).raise_for_status()
            taken.append(time.perf_counter() - begin)
    return taken


@contextmanager
def _viewers(number: int, page: str, token: str, seen: list[Seen]) -> Iterator[None]:
    """Let so many viewers look meanwhile, as the page's script does."""
    results: Queue[Seen] = SPAWN.Queue()
    process = SPAWN.Process(target=_look, args=(number, page, token, results))
    process.start()
    try:
        yield
    finally:
        seen.append(results.get(timeout=120))
        process.join(20)


def _look(number: int, page: str, token: str, results: Queue[Seen]) -> None:
    taken: list[float] = []
    received = 0

    async def view(client: httpx.AsyncClient, first_after: float, until: float) -> None:
        nonlocal received
        await asyncio.sleep(first_after)
        known: dict[str, str] = {}
        while time.perf_counter() < until:
            begin = time.perf_counter()
            async with client.stream("GET", f"{page}?part=view", headers=known) as answer:
                received += sum([len(piece) async for piece in answer.aiter_raw()])
            if answer.status_code not in (200, 304):
                raise RuntimeError(f"the page answers {answer.status_code}")
            taken.append(time.perf_counter() - begin)
            known = {"If-None-Match": answer.headers["etag"]}
            await asyncio.sleep(PAUSE_SECONDS)

    async def look() -> None:
        until = time.perf_counter() + SETTLING_SECONDS + SECONDS
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(headers=_bearer(token), timeout=60, limits=limits) as client:
            firsts = (PAUSE_SECONDS * at / number for at in range(number))
            await asyncio.gather(*(view(client, first, until) for first in firsts))

    asyncio.run(look())
    results.put(Seen(len(taken), received, max(taken)))


@contextmanager
def _api_server(home: Path) -> Iterator[tuple[int, str, str]]:
    """Airflow's API server with one process; its number, its address, and a token of an administrator."""
    base_url = f"http://127.0.0.1:{_free_port()}"
    own = {
        "AIRFLOW__API__BASE_URL": base_url,
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of the bench that is as long as it has to be " * 2,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    }
    command = [sys.executable, "-m", "airflow", "api-server", "--workers", "1", "--host", "127.0.0.1"]
    with (home / "api-server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--port", base_url.rpartition(":")[2]], env={**os.environ, **own}, stdout=log, stderr=log
        )
        try:
            yield process.pid, base_url, _token(base_url)
        finally:
            process.terminate()
            process.wait(30)


def _cpu_seconds(process: int) -> float:
    """How long a process and its children have computed."""
    seconds = 0.0
    for one in [process, *map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]:
        user, system = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13]
        seconds += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return seconds


def _token(base_url: str) -> str:
    until = time.monotonic() + 180
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            return str(httpx.get(f"{base_url}/auth/token", timeout=60).json()["access_token"])
        time.sleep(1)
    raise RuntimeError("the API server does not answer")


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _run_id() -> str:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return str(session.scalar(select(DagRun.run_id).where(DagRun.dag_id == "waits")))


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as socket:
        return int(socket.getsockname()[1])


@contextmanager
def _service() -> Iterator[str]:
    """The service, in a process of its own; its address."""
    port = _free_port()
    process = SPAWN.Process(target=_serve, args=(port,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.join(20)


def _serve(port: int) -> None:
    head, tail = _largest()
    reads = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            nonlocal reads
            reads += 1
            body = b'{"id": "7", "status": "success", "workflowId": "w", "finished": true}'
            if "/executions?" in self.path:
                body = _open(reads) if "status=running" in self.path else b'{"data": [], "nextCursor": null}'
            if "includeData=true" in self.path:
                body = b"%s%09d%s" % (head, reads, tail)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def _open(reads: int) -> bytes:
    """The executions that run, all but one, which differs with every read."""
    numbers = [number for number in range(MAX_EXECUTIONS - OPEN, MAX_EXECUTIONS) if number % 50 != reads % 50]
    fields = {"status": "running", "startedAt": "2026-11-01T00:00:00.000Z", "stoppedAt": None}
    listed = [{"id": str(number), "workflowId": f"w{number % WORKFLOWS}", **fields} for number in numbers]
    return json.dumps({"data": listed, "nextCursor": None}).encode()


def _largest() -> tuple[bytes, bytes]:
    """An execution just below the limit, in two pieces: between them the name of its workflow gets a number."""
    from airflow_provider_service._core.runs.output import MAX_SHOWN_MIB  # imports Airflow, which needs its home before

    names = [f"Node {at}" for at in range(MAX_NODES)]
    nodes = [
        {"name": name, "type": "n8n-nodes-base.code", "position": [220 * (at % 20), 120 * (at // 20)]}
        for at, name in enumerate(names)
    ]
    each = MAX_LINES // MAX_NODES + 1
    connections = {
        name: {"main": [[{"node": names[(at + step) % MAX_NODES]} for step in range(1, each + 1)]]}
        for at, name in enumerate(names)
    }
    limit = MAX_SHOWN_MIB * 2**20 - 2_000
    body = b""
    text = 300
    while not body or len(body) > limit:  # as much text in the items as there is room for
        text -= 5
        run = {"executionTime": 20, "executionStatus": "success", "data": {"main": [[{"json": {"text": "x" * text}}]]}}
        runs = {
            name: [{"startTime": 1_767_225_600_000 + 30 * (at + turn), **run} for turn in range(RUNS_OF_A_NODE)]
            for at, name in enumerate(names)
        }
        workflow = {"name": "Largest NUMBER", "id": "w", "nodes": nodes, "connections": connections}
        execution = {"id": "7", "status": "running", "mode": "webhook", "workflowId": "w", "workflowData": workflow}
        body = json.dumps({**execution, "data": {"resultData": {"runData": runs}}}).encode()
    head, _, tail = body.partition(b"NUMBER")
    return head, tail


if __name__ == "__main__":
    main()
