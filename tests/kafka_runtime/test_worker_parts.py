"""How a worker ends, and begins: what it says where a stage cannot be stopped, when it may begin anew, its threads."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from memsluice.errors import ConfigError, RowsDamaged
from memsluice.runtimes import assembly
from memsluice.runtimes.kafka import worker as worker_module
from memsluice.runtimes.kafka.spec import Tuning
from memsluice.runtimes.kafka.worker import EXIT_FAILED, EXIT_OK, _Worker

SPEC: Any = SimpleNamespace(name="screen", tuning=Tuning(stop_s=600.0), keys=None)
"""Its watchdog would end this very process, had that stood still for as long as it may take to stop."""


class _App:
    """An app whose stage failed, and which may not let itself be stopped."""

    def __init__(self, failure: BaseException | None, stop: BaseException | None = None) -> None:
        self.runner = SimpleNamespace(failure=failure, ending=False)
        self._stop = stop

    async def stop(self) -> None:
        if self._stop is not None:
            raise self._stop


def _ended(app: _App, *, signalled: bool = False, on_cut_off: Any = None) -> tuple[int, list[Any]]:
    """Run a worker of one app, which has failed or waits, to its end; return its code and what it said."""

    async def scene() -> int:
        made = _Worker([SPEC], None, None, "0", None, on_cut_off)  # type: ignore[arg-type]
        made._apps = [app]  # type: ignore[list-item]
        told = asyncio.Event()

        async def live(_app: Any) -> None:
            if app.runner.failure is None:
                await asyncio.Event().wait()

        made._live = live  # type: ignore[method-assign]
        if signalled:
            asyncio.get_running_loop().call_later(0.05, told.set)
        try:
            return await made._run_apps(told, None, 1.0)
        finally:
            made.disarm()

    with capture_logs() as logs:
        code = asyncio.run(scene())
    return code, [(log["log_level"], log["event"]) for log in logs]


@pytest.mark.parametrize("why", [OSError("no space left"), TimeoutError()])
def test_a_stage_that_cannot_be_stopped_to_begin_anew_ends_the_worker_aloud(why: Exception) -> None:
    """On-call sees a critical line, and none that says that the worker stopped as it was told to."""
    code, said = _ended(_App(RowsDamaged("the local rows of partition 0 are damaged"), why))
    assert code == EXIT_FAILED
    assert ("critical", "the stage could not be stopped to begin anew; the worker ends") in said
    assert "worker stopped" not in [event for _, event in said]


def test_a_worker_that_was_told_to_stop_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual end: code 0, and one line."""
    code, said = _ended(_App(None), signalled=True)
    assert (code, said[-1]) == (EXIT_OK, ("info", "worker stopped"))


@pytest.mark.parametrize("signalled", [False, True])
def test_a_worker_that_is_told_to_stop_while_it_hangs_does_not_begin_anew(
    monkeypatch: pytest.MonkeyPatch, signalled: bool
) -> None:
    """A supervisor's SIGTERM holds, also where the worker had failed on a full disk and hung as it stopped."""
    begun: list[int] = []

    class Watchdog:
        def __init__(self, _bound_s: float, code: int, on_cut_off: Any) -> None:
            asyncio.get_running_loop().call_later(0.1, on_cut_off, code)

        def cancel(self) -> None:
            """Leave it: the stop hangs."""

    class Hangs(_App):
        async def stop(self) -> None:
            await asyncio.sleep(0.2)

    monkeypatch.setattr(worker_module, "_Watchdog", Watchdog)
    code, _ = _ended(Hangs(ConfigError("no space left")), signalled=signalled, on_cut_off=begun.append)
    assert code == EXIT_FAILED
    assert begun == ([] if signalled else [EXIT_FAILED])


@pytest.mark.parametrize(("cores", "threads"), [(1, 2), (2, 2), (4, 4), (8, 8), (64, 8)])
def test_seal_works_on_a_batch_for_each_core_within_bounds(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int
) -> None:
    """Nobody sets a knob: a larger machine encodes more batches at once, and one core still signs beside encoding."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert assembly.seal_threads() == threads
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert assembly.seal_threads() == threads
