"""``run_task`` runs a task as Airflow does: rendered, deferred, retried, rescheduled; waits take no time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseOperator,
    BaseSensorOperator,
    task,
)
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_service.client._clock import clock
from airflow_provider_service.testing import SimulatedService, run_task
from tests import airflow_features

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]

DAY = datetime(2026, 1, 31, 6, tzinfo=UTC)


class Echo(BaseOperator):
    """Returns its rendered value."""

    template_fields = ("value",)

    def __init__(self, *, value: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.value = value

    def execute(self, context: Any) -> Any:
        return self.value


class Countdown(BaseTrigger):
    """Fires at once."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.Countdown", {"number": self.number}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent({"number": self.number - 1})


class Defers(BaseOperator):
    """Defers a number of times."""

    template_fields = ("number",)

    def __init__(self, *, number: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.number = number

    def execute(self, context: Any) -> Any:
        context["ti"].xcom_push(key="asked", value=self.number)
        self.defer(trigger=Countdown(int(self.number)), method_name="again", kwargs={"so_far": ["executed"]})

    def again(self, context: Any, event: dict[str, int], so_far: list[str]) -> list[str]:
        so_far = [*so_far, f"{event['number']} of {self.number}"]
        if event["number"]:
            self.defer(trigger=Countdown(event["number"]), method_name="again", kwargs={"so_far": so_far})
        return so_far


class Pause(BaseTrigger):
    """Fires later, by the system's clock or by the one that jumps."""

    def __init__(self, seconds: float, jumps: bool) -> None:
        super().__init__()
        self.seconds, self.jumps = seconds, jumps

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.Pause", {"seconds": self.seconds, "jumps": self.jumps}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await (clock().async_sleep(self.seconds) if self.jumps else asyncio.sleep(self.seconds))
        yield TriggerEvent("fired")


class DefersOnce(BaseOperator):
    """Defers with a limit and with a value for the time after."""

    def __init__(self, *, trigger: BaseTrigger, limit: timedelta | None = None, keeps: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.trigger, self.limit, self.keeps = trigger, limit, keeps

    def execute(self, context: Any) -> Any:
        self.defer(trigger=self.trigger, method_name="after", kwargs={"kept": self.keeps}, timeout=self.limit)

    def after(self, context: Any, event: str, kept: Any) -> list[Any]:
        return [event, kept]


class Failing(BaseOperator):
    """Fails in its first attempts."""

    def __init__(self, *, error: type[Exception], succeeds_in: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error, self.succeeds_in = error, succeeds_in

    def execute(self, context: Any) -> int:
        number: int = context["ti"].try_number
        if number < self.succeeds_in:
            raise self.error(f"attempt {number}")
        return number


class Third(BaseSensorOperator):
    """Succeeds the third time."""

    pokes: list[str] = []

    def poke(self, context: Any) -> bool:
        self.pokes.append("poke")
        return len(self.pokes) == 3


class Never(BaseSensorOperator):
    """Does not succeed; fails when it should have timed out long ago."""

    pokes: list[str] = []

    def poke(self, context: Any) -> bool:
        self.pokes.append("poke")
        assert len(self.pokes) < 20
        return False


def test_templates_are_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_REGION", "eu")
    value = ["{{ ds }}", "{{ ts_nodash }}", "{{ params.day }}", "{{ var.value.region }}", "{{ run_id }}", "{{ own }}"]
    value.append("{{ macros.ds_add(ds, 1) }} {{ dag_run.conf['day'] }} {{ ti.task_id }} {{ task.owner }}")
    with DAG("dag", schedule=None, params={"day": "monday"}, default_args={"owner": "team"}):
        echo = Echo(task_id="echo", value=value)

    result = run_task(echo, params={"day": "sunday"}, logical_date=DAY, run_id="me", context={"own": "mine"})

    expected = ["2026-01-31", "20260131T060000", "sunday", "eu", "me", "mine", "2026-02-01 sunday echo team"]
    assert result.return_value == result.xcoms["return_value"] == expected
    assert echo.value == value
    with DAG("other", schedule=None, params={"day": "monday"}):
        assert run_task(Echo(task_id="echo", value="{{ params.day }}")).return_value == "monday"


def test_the_output_of_other_tasks_is_given() -> None:
    with DAG("dag", schedule=None):
        extract = Echo(task_id="extract", value=[])
        pulled = "{{ ti.xcom_pull('extract') }} {{ ti.xcom_pull('extract', key='a') }} {{ ti.xcom_pull('b') }}"
        load = Echo(task_id="load", value=[extract.output, extract.output["a"], pulled])

    given = run_task(load, upstream={"extract": {"a": 1}, "b": None})

    assert given.return_value == [{"a": 1}, 1, "{'a': 1} 1 None"]
    with pytest.raises(LookupError, match=r"uses the output of task 'extract'.*upstream=\{'extract': \.\.\.\}"):
        run_task(load, upstream={"b": None})


def test_a_function_runs_with_its_context() -> None:
    with DAG("dag", schedule=None):

        @task(multiple_outputs=True)
        def sync(region: str, ti: Any = None, params: Any = None) -> dict[str, Any]:
            ti.xcom_push(key="own", value=1)
            return {"region": region, "try": ti.try_number}

        called = sync("{{ ds_nodash }}")

    assert run_task(called, logical_date=DAY).xcoms == {
        "own": 1,
        "region": "20260131",
        "try": 1,
        "return_value": {"region": "20260131", "try": 1},
    }


def test_a_deferred_task_is_carried_to_its_end() -> None:
    result = run_task(Defers(task_id="defers", number="{{ params.n }}", params={"n": 3}))

    assert result.return_value == ["executed", "2 of 3", "1 of 3", "0 of 3"]
    assert (result.deferrals, result.xcoms["asked"]) == (3, "3")


@pytest.mark.parametrize(
    ("trigger", "limit"),
    [(Pause(2, jumps=False), timedelta(seconds=0.2)), (Pause(7200, jumps=True), timedelta(hours=1))],
    ids=["real time", "jumps"],
)
def test_a_deferral_has_a_timeout(service: SimulatedService, trigger: Pause, limit: timedelta) -> None:
    with pytest.raises(AirflowException, match="Trigger timeout"):
        run_task(DefersOnce(task_id="t", trigger=trigger, limit=limit))


@pytest.mark.parametrize("trigger", [Pause(0.3, jumps=False), Pause(7200, jumps=True)], ids=["real time", "jumps"])
def test_a_deferral_ends_within_its_timeout(service: SimulatedService, trigger: Pause) -> None:
    result = run_task(DefersOnce(task_id="t", trigger=trigger, limit=timedelta(hours=3), keeps={"day": DAY}))

    assert result.return_value == ["fired", {"day": DAY}]


def test_a_task_is_retried_as_airflow_would() -> None:
    retried = run_task(Failing(task_id="t", error=ValueError, succeeds_in=3, retries=4), attempts=5)
    assert (retried.return_value, retried.attempts) == (3, 3)

    with pytest.raises(ValueError, match="attempt 2"):
        run_task(Failing(task_id="t", error=ValueError, succeeds_in=3, retries=4), attempts=2)
    for final in (AirflowFailException, AirflowSensorTimeout, AirflowSkipException):
        with pytest.raises(final, match="attempt 1"):
            run_task(Failing(task_id="t", error=final, succeeds_in=3, retries=4), attempts=5)


@pytest.mark.parametrize("retries", [0, 1])
def test_a_task_is_not_retried_more_often_than_airflow_would(retries: int) -> None:
    with pytest.raises(ValueError, match=f"attempt {retries + 1}"):
        run_task(Failing(task_id="t", error=ValueError, succeeds_in=3, retries=retries), attempts=5)


def test_what_airflow_cannot_store_is_refused() -> None:
    with pytest.raises(TypeError):
        run_task(Echo(task_id="echo", value=object()))
    with pytest.raises(TypeError):
        run_task(DefersOnce(task_id="t", trigger=Countdown(1), keeps=lambda: 1, do_xcom_push=False))
    with pytest.raises(TypeError, match="a task with multiple_outputs must return a mapping, not list"):
        run_task(Echo(task_id="echo", value=[1], multiple_outputs=True))


def test_a_mapped_task_is_refused() -> None:
    with DAG("dag", schedule=None):
        mapped = Echo.partial(task_id="echo").expand(value=[1, 2])

    with pytest.raises(TypeError, match=r"task 'echo' is mapped; run its DAG with dag\.test\(\)"):
        run_task(mapped)


@airflow_features.light_imports
def test_a_rescheduled_sensor_is_run_again(service: SimulatedService) -> None:
    Third.pokes.clear()

    run_task(Third(task_id="third", mode="reschedule", poke_interval=3600, timeout=86_400))

    assert len(Third.pokes) == 3


@airflow_features.light_imports
@pytest.mark.parametrize(("soft_fail", "end"), [(False, AirflowSensorTimeout), (True, AirflowSkipException)])
def test_a_rescheduled_sensor_of_another_provider_times_out(
    service: SimulatedService, soft_fail: bool, end: type[Exception]
) -> None:
    Never.pokes.clear()

    with pytest.raises(end, match="Sensor has timed out"):
        run_task(Never(task_id="n", mode="reschedule", poke_interval=60, timeout=300, soft_fail=soft_fail))

    assert len(Never.pokes) == 6  # the last one after 5 minutes
