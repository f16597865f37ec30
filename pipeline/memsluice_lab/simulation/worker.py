"""One process of one stage: the production runner, its lanes and its fence, over what is simulated."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import patch

from aiokafka.errors import KafkaError

from memsluice.errors import BeginAnew, StateError, StoreUnavailable
from memsluice.events.records import Record
from memsluice.runtimes.kafka import batching, fence, state
from memsluice.runtimes.kafka.batching import BatchRunner
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.runner import StageRunner
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice.runtimes.kafka.stateful import StatefulRunner
from memsluice_lab.simulation.broker import Broker
from memsluice_lab.simulation.consumer import Consumer
from memsluice_lab.simulation.loop import Clock, WorkerLoop
from memsluice_lab.simulation.producers import TransactionalProducer, Wire
from memsluice_lab.simulation.rocks import Disk, Module, Rows

EXPECTED: Final = (BeginAnew, KafkaError, StoreUnavailable, ConnectionError, TimeoutError)
"""How a stage may end in a history: it is started again. Any other end is a violation."""


class Killed(BaseException):
    """The process died inside of a call."""


class TopicReader:
    """As much of :class:`memsluice.readers.kafka.KafkaTopic` as stages and recovery use; reads what is committed."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.name = topic
        self._broker = broker

    def end(self, partition: int) -> int:
        """Return the offset of the next record, as a reader of committed records is told it."""
        return self._broker.log(self.name, partition).stable()

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield committed records."""
        return self._broker.log(self.name, partition).read(from_offset)

    def close(self) -> None:
        """Do nothing."""


class _Threads:
    """What stands for the runner's threads: the scheduler says when a call runs."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self.threads = threads

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Queue a call."""
        return asyncio.get_running_loop().run_in_executor(None, partial(function, *arguments))

    def close(self) -> None:
        """Do nothing."""


class _Connection:
    """What the fence asks a connection for: here the wire goes along with the settings."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def aiokafka(self, user: str) -> dict[str, Any]:
        """Return settings."""
        return {"wire": self._wire}


@contextmanager
def installed() -> Iterator[None]:
    """Put what is simulated under the runtime for as long as this lasts."""
    with (
        patch.object(batching, "StageThreads", _Threads),
        patch.object(fence, "TransactionalProducer", TransactionalProducer),
        patch.object(state, "rocksdict", Module),
    ):
        yield


class Worker:
    """The process. ``disk`` outlives it; ``told`` hears of what must not happen."""

    def __init__(
        self,
        name: str,
        spec: StageSpec,
        broker: Broker,
        clock: Clock,
        disk: Disk,
        told: Callable[[str], None],
        make: Callable[["Worker"], Any],
    ) -> None:
        self.name = name
        self.spec = spec
        self.disk = disk
        self.loop: WorkerLoop = WorkerLoop(  # type: ignore[abstract]  # what nobody asks of it is not there
            clock, lambda error: told(f"{name}: {error!r}")
        )
        self.wire = Wire(self.loop, broker)
        self.paused = False
        self.slow_until_s = 0.0
        """Until when nothing that it sends arrives."""
        self.busy = 0
        """Calls of threads that are under way, one inside of the other where the scheduler went on meanwhile."""
        self.sweep: Any = None
        """What sweeps the store, of a process of land."""
        self.stage = make(self)
        app = SimpleNamespace()
        self.runner = app.runner = self._runner(broker, app)
        self.consumer = app.consumer = Consumer(self.wire, spec)
        self.consumer.runner = self.runner
        if isinstance(self.runner, BatchRunner):
            self.runner._open_overflow = lambda _: TopicReader(broker, spec.overflow)  # type: ignore[assignment,return-value]
        self.loop.call_soon(self._start)

    def _runner(self, broker: Broker, app: Any) -> StageRunner:
        faults, connection = Faults(), cast(Any, _Connection(self.wire))
        if self.spec.kind != "stateful":
            return BatchRunner(self.spec, self.stage, faults, app, connection)
        runner = StatefulRunner(self.spec, self.stage, faults, app, connection, Path())
        runner.state = Rows(self.disk)
        runner._open_log = lambda _: TopicReader(broker, self.spec.changelog)  # type: ignore[assignment,return-value]
        return runner

    def _start(self) -> None:
        self.runner.start()
        self.loop.create_task(self.runner.consume(self.consumer.stream))
        self.loop.create_task(self.consumer.serve())

    # --- for the scheduler ---

    @property
    def dead(self) -> bool:
        """Whether the process is no more."""
        return self.loop.dead

    def kill(self) -> None:
        """End the process here and now."""
        self.loop.kill()

    def failure(self) -> BaseException | None:
        """Return why the stage ended, or a partition of it stands still, which nobody here resumes; None: it runs."""
        parked = next(iter(self.runner.parked.values()), None)
        return self.runner.failure or (None if parked is None else StateError(parked.reason))

    def may_run(self) -> bool:
        """Whether callbacks wait that may run now."""
        return not self.paused and not self.dead and self.loop.is_ready()

    def may_call(self) -> bool:
        """Whether a call waits for a thread that is free."""
        return not self.paused and not self.dead and bool(self.loop.jobs) and self.busy < self.spec.tuning.threads

    def call(self) -> None:
        """Run the next call of a thread."""
        job = self.loop.jobs.popleft()
        self.busy += 1
        result: Any = None
        error: BaseException | None = None
        try:
            result = job.call()
        except Killed:
            return
        except Exception as raised:
            error = raised
        finally:
            self.busy -= 1
        if self.dead or job.future.done():
            return
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
            job.future.exception()
