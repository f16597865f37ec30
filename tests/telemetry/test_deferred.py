"""Metrics and spans are made when there are some of them, and never later than somebody asks."""

from collections.abc import Iterator

import pytest
from tests.telemetry.test_backend_down import _spec
from tests.telemetry.test_metrics import get
from tests.telemetry.test_spans import intake, traceparent

from memsluice.telemetry import deferred
from memsluice.telemetry.deferred import MANY, Later
from memsluice.telemetry.worker_telemetry import Telemetry


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Later]:
    """One whose thread does not come by during the test."""
    monkeypatch.setattr(deferred, "EVERY_S", 3_600.0)
    made = Later(4)
    yield made
    made.close()


def test_jobs_are_done_in_order_once_there_are_enough(waiting: Later) -> None:
    """Nothing is done record by record, nothing is left once they are many, and their order stays."""
    done: list[int] = []
    for number in range(3):
        waiting.put(lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == []
    waiting.put(lambda: done.append(3))
    assert done == [0, 1, 2, 3]
    waiting.put(lambda: done.append(4), records=9)
    assert done[-1] == 4


def test_few_jobs_do_not_wait_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant that writes once an hour is on the dashboard a moment later."""
    from threading import Event

    monkeypatch.setattr(deferred, "EVERY_S", 0.01)
    made, done = Later(MANY), Event()
    made.put(done.set)
    assert done.wait(240)
    made.close()


def test_what_is_left_is_done_at_the_end_and_what_comes_then_at_once(waiting: Later) -> None:
    """A worker that stops tells of its last records."""
    done: list[int] = []
    waiting.put(lambda: done.append(1))
    waiting.close()
    waiting.put(lambda: done.append(2))
    assert done == [1, 2]


def test_a_job_that_fails_ends_no_stage_and_no_other_job(waiting: Later, capsys: pytest.CaptureFixture[str]) -> None:
    """A defect of telemetry is logged by its kind, without what it says, and the stream goes on."""
    done: list[int] = []

    def fail() -> None:
        raise ValueError("a secret")

    waiting.put(fail)
    waiting.put(lambda: done.append(1), records=4)
    assert done == [1]
    said = "".join(capsys.readouterr())
    assert "ValueError" in said
    assert "a secret" not in said


def test_a_scrape_finds_what_happened_until_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks is told of the last record, though nothing of it was made yet."""
    monkeypatch.setattr(deferred, "EVERY_S", 3_600.0)
    telemetry = Telemetry([_spec()], instance="0", port=0)
    telemetry.specs[0].make().process([intake(1, traceparent())])  # type: ignore[call-arg, arg-type]
    assert telemetry.endpoint is not None
    name = 'memsluice_records_total{outcome="passed",stage="seal"}'
    assert telemetry.meters.collectors.get_sample_value(
        "memsluice_records_total", {"outcome": "passed", "stage": "seal"}
    ) in (None, 0.0)
    assert f"{name} 1.0" in get(telemetry.endpoint, "/metrics")[1]
    telemetry.close()
