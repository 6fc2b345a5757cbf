"""An execution that waits 65 seconds or longer: it sleeps, and wakes with the same id."""

from __future__ import annotations

import pytest

from .target import Target
from .workbench import LONG_WAIT, Sleeper, Workbench


@pytest.mark.covers("get_execution", "list_executions")
def test_a_waiting_execution_has_stopped_and_is_listed(sleeper: Sleeper, service: Target) -> None:
    asleep = sleeper.asleep
    assert (asleep.status, asleep.finished) == ("waiting", False)
    assert asleep.stopped_at is not None
    assert asleep.started_at is not None
    assert asleep.wait_till is not None
    assert LONG_WAIT - 1 <= (asleep.wait_till - asleep.started_at).total_seconds() <= LONG_WAIT + 10
    listed = [] if service.differs("list of waiting executions") else [asleep.id]
    assert sleeper.listed == sleeper.listed_as_waiting == listed
    assert asleep.data is not None
    assert "Webhook" in asleep.data["resultData"]["runData"]


@pytest.mark.covers("get_execution")
def test_it_continues_when_its_wait_is_over(sleeper: Sleeper, bench: Workbench, service: Target) -> None:
    service.pass_time(LONG_WAIT)
    awake = bench.finished(sleeper.asleep.id, seconds=LONG_WAIT + 30)
    assert (awake.status, awake.finished, awake.wait_till) == ("success", True, None)
    assert (awake.started_at != sleeper.asleep.started_at) is service.differs("start of what slept")
    assert awake.data is not None
    assert "Done" in awake.data["resultData"]["runData"]
