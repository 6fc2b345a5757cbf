"""Features that older versions of Airflow lack: marks for the tests that need them, by docs/compatibility.md."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from packaging.specifiers import SpecifierSet

AIRFLOW = version("apache-airflow")

light_imports = pytest.mark.airflow(">=3.0", lacks="light imports")
asset_watchers = pytest.mark.airflow(">=3.0", lacks="asset watchers")
errors_of_notifiers = pytest.mark.airflow(">=3.1", lacks="errors of notifiers")
pages = pytest.mark.airflow(">=3.1", lacks="pages of plugins")
async_notifiers = pytest.mark.airflow(">=3.1", lacks="notifiers in the triggerer")
commands_of_providers = pytest.mark.airflow(">=3.2", lacks="commands of providers")
errors_of_extras = pytest.mark.airflow(">=3.2", lacks="errors of extras")
kills_in_the_triggerer = pytest.mark.airflow(">=3.3", lacks="kills of deferred tasks")
teams = pytest.mark.airflow(">=3.2", lacks="teams")
shared_polls = pytest.mark.airflow(">=3.3", lacks="shared polls")
state_of_tasks = pytest.mark.airflow(">=3.3", lacks="state of tasks")
keeps_state_of_tasks = SpecifierSet(">=3.3").contains(AIRFLOW, prereleases=True)
kept_cursors = pytest.mark.airflow(">=3.3", lacks="state of assets")


def skip_what_airflow_lacks(item: pytest.Item) -> None:
    """Skip a test whose ``airflow`` marks do not allow the version that is installed."""
    for mark in item.iter_markers("airflow"):
        if not SpecifierSet(mark.args[0]).contains(AIRFLOW, prereleases=True):
            pytest.skip(f"Airflow {AIRFLOW} lacks {mark.kwargs['lacks']}")
