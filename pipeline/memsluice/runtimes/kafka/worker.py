"""One process, any subset of the stages. More processes with other replica names rebalance."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError

from memsluice.deployment.connection import Connection
from memsluice.errors import BeginAnew, ConfigError, NotCommitted
from memsluice.log import get_logger, said
from memsluice.runtimes.kafka.apps import build_app
from memsluice.runtimes.kafka.board import Board
from memsluice.runtimes.kafka.broker_watch import BrokerWatch, quiet_libraries, watching
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.overrides import StageApp
from memsluice.runtimes.kafka.progress import StageProgress, stage_progress
from memsluice.runtimes.kafka.replica import held
from memsluice.runtimes.kafka.spec import StageSpec

LOG = get_logger(__name__)

EXIT_OK: Final = 0
EXIT_FAILED: Final = 70
"""A stage failed, a send failed, a record was lost: nothing is committed past it. Start again, after a look."""
EXIT_HUNG: Final = 75
"""The worker was told to stop and something hung; it was cut off at its bound. Nothing is lost."""

THREADS_MAX: Final = 128
"""Threads for calls that block, made as they are needed."""
AGAIN_S: Final = 1.0
"""Pause before a stage begins anew: a broker that is coming up answers before it can serve."""

OnProgress = Callable[[Sequence[StageProgress]], None]
OnCutOff = Callable[[int], None]
Resolve = Callable[[str], StageSpec]


def run_worker(
    stages: Sequence[str | StageSpec],
    connection: Connection,
    *,
    data_dir: Path,
    replica: str = "0",
    resolve: Resolve | None = None,
    faults: Faults | None = None,
    on_progress: OnProgress | None = None,
    progress_every_s: float = 1.0,
    on_cut_off: OnCutOff | None = None,
) -> int:
    """Run the stages until SIGTERM or SIGINT (returns 0) or a failure (returns 70).

    ``resolve`` turns a stage's name into its spec. ``on_progress`` is called on the event loop every
    ``progress_every_s`` seconds. Once stopping, the process lives at most the largest ``stop_s`` of its stages; what
    was not finished by then is read again by the next one. Unless it was a signal that stopped it, ``on_cut_off`` is
    called with the exit code then, in another thread, and may begin the process anew. Raises ConfigError before
    anything runs, also where another live worker holds the name ``replica`` for one of the stages below ``data_dir``.
    """
    specs = [_spec(stage, resolve) for stage in stages]
    if not specs:
        raise ConfigError("the worker was given no stage to run")
    if len({spec.app_id for spec in specs}) != len(specs):
        raise ConfigError("a stage may run only once in a process")
    worker = _Worker(specs, connection, data_dir, replica, faults, on_cut_off)
    with held([data_dir / spec.app_id / replica for spec in specs], replica):
        try:
            return asyncio.run(worker.run(on_progress, progress_every_s))
        finally:
            worker.disarm()


def _spec(stage: str | StageSpec, resolve: Resolve | None) -> StageSpec:
    if isinstance(stage, StageSpec):
        return stage
    if resolve is None:
        raise ConfigError(f"stage {stage!r}: no way to resolve names was given")
    return resolve(stage)


class _Worker:
    def __init__(
        self,
        specs: list[StageSpec],
        connection: Connection,
        data_dir: Path,
        replica: str,
        faults: Faults | None,
        on_cut_off: OnCutOff | None,
    ) -> None:
        self._specs = specs
        self._connection = connection
        self._data_dir = data_dir
        self._replica = replica
        self._faults = faults
        self._on_cut_off = on_cut_off
        self._apps: list[StageApp] = []
        self._boards = [Board(spec, connection) if spec.keys is not None else None for spec in specs]
        self._stopping = False
        self._watchdog: _Watchdog | None = None
        self._begun: set[str] = set()
        """Stages that have begun anew at least once."""

    def disarm(self) -> None:
        """Cut nothing off any more: all has ended, also what the event loop waited for at its end."""
        if self._watchdog is not None:
            self._watchdog.cancel()

    async def run(self, on_progress: OnProgress | None, every_s: float) -> int:
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError, RuntimeError):  # not the main thread: the caller handles signals
                loop.add_signal_handler(number, told.set)
        LOG.info("worker loading: the first start after an installation compiles the detectors, half a minute")
        # Partitions are restored in these threads, minutes each: nothing else that needs one waits behind them.
        loop.set_default_executor(ThreadPoolExecutor(THREADS_MAX, "wait"))
        self._apps = [await self._build(spec) for spec in self._specs]
        quiet_libraries()
        first = self._specs[0]
        async with watching(BrokerWatch.of(self._connection, first.user, first.inputs[0])):
            return await self._run_apps(told, on_progress, every_s)

    async def _build(self, spec: StageSpec) -> StageApp:
        """Make a stage, models and all, in a thread: the other stages go on meanwhile. Then the app around it."""
        made = replace(spec, stage=await asyncio.to_thread(spec.make))
        return build_app(made, self._connection, data_dir=self._data_dir, replica=self._replica, faults=self._faults)

    async def _run_apps(self, told: asyncio.Event, on_progress: OnProgress | None, every_s: float) -> int:
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[Any]] = [loop.create_task(told.wait())]
        tasks += [loop.create_task(self._live_on(number)) for number in range(len(self._apps))]
        reporter = loop.create_task(self._report(on_progress, every_s)) if on_progress is not None else None
        attending = [
            loop.create_task(board.attend(lambda number=number: self._apps[number]))  # type: ignore[misc]
            for number, board in enumerate(self._boards)
            if board is not None
        ]
        _freeze()
        LOG.info("worker starting", stages=[spec.name for spec in self._specs], replica=self._replica)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self._stopping = True
        code = EXIT_OK if told.is_set() and not self._failures() else EXIT_FAILED
        if failures := self._failures():  # said before stopping, which may hang
            LOG.critical("worker ends by a failure", errors=[said(error) for error in failures])

        def on_cut_off(code: int) -> None:
            if self._on_cut_off is not None and not told.is_set():
                self._on_cut_off(code)

        self._watchdog = _Watchdog(max(spec.tuning.stop_s for spec in self._specs), code, on_cut_off)
        for task in (*attending, *([reporter] if reporter is not None else [])):
            task.cancel()
        await self._stop(tasks)
        if self._failures():
            return EXIT_FAILED
        if code == EXIT_OK:  # else what ended it was said
            LOG.info("worker stopped", stages=[spec.name for spec in self._specs])
        return code

    def _failures(self) -> list[BaseException]:
        """Return what ended stages. One that would begin anew has not failed: a stop leaves that to the next worker."""
        failures = (app.runner.failure for app in self._apps)
        return [error for error in failures if error is not None and not isinstance(error, BeginAnew)]

    async def _live_on(self, number: int) -> None:
        """Keep one stage running: it begins anew where the broker shut it out or broke off what it wrote, and ends with
        any other failure.

        A worker that was paused (a laptop's lid, a long collection of garbage) finds its partitions taken over. What it
        held was written by nobody, and what it kept in memory may be another's now: both go with the app. So it is
        where a broker goes down in the middle of a transaction.
        """
        while True:
            app, spec = self._apps[number], self._specs[number]
            await self._live(app)
            if not isinstance(app.runner.failure, BeginAnew) or self._stopping:
                return
            LOG.warning("the stage begins anew", stage=spec.name, why=said(app.runner.failure))
            try:
                async with asyncio.timeout(spec.tuning.stop_s):
                    await app.stop()
            except Exception as error:
                why = "it took too long" if isinstance(error, TimeoutError) else said(error)
                LOG.critical("the stage could not be stopped to begin anew; the worker ends", stage=spec.name, why=why)
                return
            del app
            await asyncio.sleep(AGAIN_S)
            gc.unfreeze()  # what the stage was made of can go once the new one stands in its place
            try:
                self._apps[number] = await self._build(spec)
            except Exception as error:  # a policy file that was damaged meanwhile, say
                LOG.critical("the stage cannot begin anew; the worker ends", stage=spec.name, error=said(error))
                return
            _freeze()
            self._begun.add(spec.name)

    async def _live(self, app: StageApp) -> None:
        """Start one app and return when it has failed."""
        crashed = asyncio.ensure_future(app._crashed.wait())
        failed = asyncio.ensure_future(app.runner.failed.wait())
        starting = asyncio.ensure_future(self._start(app))
        try:
            done, _ = await asyncio.wait((crashed, failed, starting), return_when=asyncio.FIRST_COMPLETED)
            if starting in done and (error := starting.exception()) is not None:
                app.runner.fail(self._named(error, app.runner.spec.name))
            await asyncio.wait((crashed, failed), return_when=asyncio.FIRST_COMPLETED)
            if crashed.done():
                app.runner.fail(app.crash_reason or RuntimeError("the app crashed"))
        finally:
            for future in (crashed, failed, starting):
                future.cancel()

    async def _start(self, app: StageApp) -> None:
        """Start an app once the broker answers. Raises KafkaConnectionError where it doesn't: a thread of Faust's would
        end with a traceback."""
        client = AIOKafkaClient(**self._connection.aiokafka(app.runner.spec.user))
        try:
            await client.bootstrap()
        finally:
            await client.close()
        await app.start()

    def _named(self, error: BaseException, stage: str) -> BaseException:
        """Return an error of the start, as a sentence where it is the commonest one.

        A stage that has begun before waits for a broker that is away; one that never ran is told where it looked.
        """
        if not isinstance(error, KafkaConnectionError):
            return error
        missing = f"no broker answers at {self._connection.bootstrap}"
        if stage in self._begun:
            return NotCommitted(missing)
        return ConfigError(f"{missing}; `memsluice stack up` starts the local one")

    async def _stop(self, tasks: list["asyncio.Task[Any]"]) -> None:
        for app in self._apps:
            app.runner.ending = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for error in await asyncio.gather(*(app.stop() for app in self._apps), return_exceptions=True):
            if isinstance(error, BaseException):
                LOG.warning("an app did not stop cleanly", error=said(error))

    async def _report(self, on_progress: OnProgress, every_s: float) -> None:
        told = True
        while True:
            await asyncio.sleep(every_s)
            try:
                on_progress([stage_progress(app) for app in self._apps])
                told = True
            except Exception as error:  # liveness goes by what is told: nobody would see that it ended
                if told:
                    LOG.error("the worker could not tell how it gets on; it tries again", error=said(error))
                told = False


def _freeze() -> None:
    """Have no collection walk models and modules again: they live as long as the stages do."""
    gc.collect()
    gc.freeze()


class _Watchdog:
    """Cuts the process off when stopping takes longer than its bound."""

    def __init__(self, bound_s: float, code: int, on_cut_off: OnCutOff) -> None:
        self._timer = threading.Timer(bound_s, self._cut_off, (bound_s, code, on_cut_off))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """The worker has stopped by itself."""
        self._timer.cancel()

    @staticmethod
    def _cut_off(bound_s: float, code: int, on_cut_off: OnCutOff) -> None:
        code = code or EXIT_HUNG
        try:
            LOG.error("worker cut off while stopping: what it had not committed is read again", bound_s=bound_s)
            sys.stdout.flush()
            sys.stderr.flush()
            on_cut_off(code)
        finally:
            os._exit(code)
