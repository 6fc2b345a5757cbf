"""Take a corpus through plan, deployment, activation, export, backup, restore and drawing, on the simulator.

``python -m tests.corpus`` prints a table, and exits with 1 if something differs from what is expected.
``--files`` takes the workflows of a folder instead; all credentials that they name exist then.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from tests.corpus.files import credentials_of, read_files
from tests.corpus.journey import Journey
from tests.corpus.workflows import Sample, corpus, existing


def travel(samples: list[Sample], folder: Path, *, is_known: bool = True) -> Journey:
    """Take workflows from one simulator to another."""
    with ServiceSimulator() as first, ServiceSimulator() as second:
        for state in (first.state, second.state):
            for kind, name, data in existing() if is_known else credentials_of(samples):
                state.credentials.add(name, kind, data, state.personal_project_id)
        configs = [ServiceConfig(base_url=one.base_url, api_key=one.api_key) for one in (first, second)]
        with ServiceClient(configs[0]) as one, ServiceClient(configs[1]) as other:
            journey = Journey(samples, one, other, folder, is_known=is_known)
            journey.go()
    return journey


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="workflows to make (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=53, help="seed of what is made (default: %(default)s)")
    parser.add_argument("--files", type=Path, help="a folder of workflows, instead of those that are made")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    samples = read_files(options.files) if options.files else corpus(options.count, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        journey = travel(samples, Path(folder), is_known=options.files is None)
    print(*journey.lines(), sep="\n")
    sys.exit(bool(journey.differences))


if __name__ == "__main__":
    main()
