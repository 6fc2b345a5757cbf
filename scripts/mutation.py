"""Mutate modules of runs, waits, rows and more one at a time, and show which mutants no test notices.

``python -m scripts.mutation [MODULE] [--function NAME] [--sample N]``. mutmut works in a folder of its own for each
module, below ``.mutation``, with the few tests that can kill that module's mutants; of these a mutant runs those that
reach it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("airflow_provider_service")
WORK = ROOT / ".mutation"
MUTMUT = Path(sys.executable).with_name("mutmut")

#: Where pytest could not run the tests of a mutant, which mutmut calls a timeout.
NOT_TESTED = 255

UPSERTS = "operators/test_upsert operators/test_stored_duplicates operators/test_rounded_values"
REFUSALS = "runs/test_refusals runs/test_webhook_authentication"
WEBHOOKS = "runs/test_starting runs/test_not_searchable"
POLLING = "waits/test_poller waits/test_poller_requests waits/test_slow_reads"
#: The tests of each module that take seconds; those that kill processes or cover the same once more are not among them.
TESTS = {
    "_core/rows/upsert_plan.py": "operators/test_upsert operators/test_stored_duplicates operators/test_column_names",
    "_core/rows/options.py": "operators/test_change_strategies",
    "_core/rows/matching.py": "operators/test_dates_in_filters",
    "_core/rows/values.py": f"{UPSERTS} operators/test_column_names operators/test_rows",
    "_core/rows/source_rows.py": "operators/test_upsert operators/test_stored_duplicates "
    "rows/test_load transfers/test_to_data_table",
    "_core/rows/target.py": "rows/test_load rows/test_frames transfers/test_to_data_table",
    "_core/rows/spool.py": "rows/test_load",
    "_core/rows/files.py": "rows/test_formats operators/test_row_files",
    "_core/rows/batches.py": f"{UPSERTS} operators/test_rows "
    "operators/test_arguments rows/test_load transfers/test_from_data_table",
    "_core/rows/frames.py": "rows/test_frames rows/test_formats transfers/test_from_data_table",
    "_core/rows/upsert.py": f"{UPSERTS} operators/test_arguments rows/test_load",
    "_core/waits/outcome.py": "waits/test_watch waits/test_trigger "
    "waits/test_killed_waits waits/test_sensor runs/test_not_searchable",
    "_core/waits/watch.py": "waits/test_watch waits/test_sensor waits/test_trigger "
    "waits/test_killed_waits health/test_sensor waits/test_source_control_sensor",
    "_core/waits/conditions.py": "health/test_sensor waits/test_source_control_sensor",
    "_core/waits/poller.py": f"{POLLING} waits/test_older_servers",
    "_core/waits/stop.py": "waits/test_matrix runs/test_killing",
    "_core/runs/searching.py": f"runs/test_searching runs/test_not_searchable "
    f"runs/test_queued {WEBHOOKS} runs/test_answers_of_others",
    "client/_execution_data.py": "client/test_execution_data runs/test_searching runs/test_output waits/test_watch",
    "_core/runs/attempt.py": "runs/test_attempts runs/test_on_retry runs/test_clearing",
    "_core/runs/idempotent_start.py": f"runs/test_attempts runs/test_on_retry runs/test_retrying runs/test_starting "
    f"runs/test_mcp {REFUSALS}",
    "_core/runs/service_retry.py": "runs/test_retrying",
    "_core/runs/request.py": f"runs/test_starting {REFUSALS}",
    "_core/runs/start_methods/start_method.py": f"runs/test_starting {REFUSALS} "
    "runs/test_answers_of_others runs/test_mcp",
    "_core/runs/start_methods/mcp.py": "runs/test_mcp",
    "_core/runs/bridge.py": "runs/test_bridge operators/test_bridge",
    "_core/runs/start_methods/bridge.py": "runs/test_bridge",
    "_core/runs/start_methods/webhook.py": f"{WEBHOOKS} {REFUSALS} runs/test_answers_of_others",
    "_core/runs/output.py": "runs/test_nodes runs/test_output",
    "_core/instances/rollback.py": "instances/test_rollback",
    "plugins/_app.py": "plugins/test_execution_page plugins/test_connection_page",
}


def lay_out(module: str) -> Path:
    """Make the folder in which mutmut runs: the project by links, and its settings with those for this module."""
    folder = WORK / module.removesuffix(".py").replace("/", ".")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copied = ["tests", "scripts", "example_dags"]
    for name in (str(PACKAGE), *copied):
        (folder / name).symlink_to(ROOT / name)
    settings = {
        "source_paths": [str(PACKAGE)],
        "also_copy": copied,
        "only_mutate": [str(PACKAGE / module)],
        "do_not_mutate_patterns": [r"\blog\.\w+\("],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": [f"tests/{name}.py" for name in TESTS[module].split()],
        # A mutant that hangs is given up after (time of its tests + constant) * multiplier.
        "timeout_constant": 3.0,
        "timeout_multiplier": 4.0,
        # Forked from a process that has imported the tests and run none: threads of earlier tests would hang them.
        "process_isolation": "forkserver",
        "use_git_change_detection": False,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    own = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text("\n".join([own, "[tool.mutmut]", *lines, ""]))
    return folder


def run(module: str, function: str | None, sample: int | None, seed: int) -> tuple[Counter[str], list[str]]:
    """Run the mutants of a module, or of one function, and return how many ended how, and what the survivors change."""
    folder = lay_out(module)
    os.chdir(folder)  # mutmut looks for its settings here
    path = PACKAGE / module
    made = mutate_file_contents(str(path), path.read_text()).mutant_names
    names = [get_mutant_name(path, name) for name in made if function in (None, _function_of(name))]
    if not names:
        raise SystemExit(f"{module} has no mutants of a function {function!r}")
    chosen = names if sample is None else sorted(random.Random(seed).sample(names, min(sample, len(names))))
    print(f"\n== {module}: {len(chosen)} of {len(names)} mutants", flush=True)
    # One at a time: the tests keep times, and a slow machine must not kill mutants.
    done = subprocess.run([MUTMUT, "run", "--max-children", "1", *chosen], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"mutmut failed on {module}:\n{done.stdout[-5000:]}{done.stderr[-5000:]}")
    codes = json.loads((folder / "mutants" / f"{path}.meta").read_text())["exit_code_by_key"]
    if NOT_TESTED in codes.values():
        raise SystemExit(f"pytest did not run the tests of {module}: it finds none by an id with control characters")
    ends = {name: status_by_exit_code[codes[name]] for name in chosen}
    changes = [_change(name, end) for name, end in ends.items() if end != "killed"]
    return Counter(ends.values()), changes


def _function_of(mutant: str) -> str:
    """The name of the function or method that a mutant changes: f of x_f__mutmut_1 and of xǁClassǁf__mutmut_1."""
    mangled = mutant.rpartition("__mutmut_")[0]
    return mangled.rpartition("ǁ")[2] if "ǁ" in mangled else mangled.removeprefix("x_")


def _change(name: str, end: str) -> str:
    shown = subprocess.run([MUTMUT, "show", name], capture_output=True, text=True, check=True).stdout
    lines = [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    return "\n".join([f"{end}: {name.rpartition('.')[2]}", *lines])


def main() -> None:
    """Run the modules that the command line names, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", nargs="?", choices=TESTS, help="below the package; all by default, which takes hours")
    parser.add_argument("--function", help="only mutants of functions and methods of this name")
    parser.add_argument("--sample", type=int, help="number of mutants of each module; all by default")
    parser.add_argument("--seed", type=int, default=0, help="chooses another sample")
    options = parser.parse_args()
    table = []
    for module in [options.module] if options.module else TESTS:
        ends, changes = run(module, options.function, options.sample, options.seed)
        print("\n\n".join(changes), flush=True)
        shown = ", ".join(f"{number} {end}" for end, number in ends.most_common())
        table.append(f"{module}: {sum(ends.values())} mutants: {shown}")
    print("", *table, sep="\n")


if __name__ == "__main__":
    main()
