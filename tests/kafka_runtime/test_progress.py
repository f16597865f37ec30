"""What a worker tells of how it gets on, by which liveness and readiness go."""

import asyncio
from types import SimpleNamespace
from typing import Any

from faust.types import TP

from memsluice.runtimes.kafka.batching import BatchRunner
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.progress import progress
from memsluice.runtimes.kafka.worker import _Worker

from . import virtual_time
from .dummies import HeldFences
from .harness import NOWHERE
from .test_parts import Relabelled, _spec


def test_a_partition_that_leaves_while_it_is_looked_at_is_left_out() -> None:
    """The client's thread may give it up between two looks, and says so by an assertion: the others are told of."""

    def highwater(tp: TP) -> int:
        assert tp.partition != 0
        return 9

    consumer = SimpleNamespace(
        started=True, assignment=lambda: {TP("a", 0), TP("a", 1)}, _committed_offset={}, highwater=highwater
    )
    runner = SimpleNamespace(
        spec=_spec(), taken=lambda _tp: 0, lanes=SimpleNamespace(is_restoring=lambda _partition: False)
    )
    app = SimpleNamespace(consumer=consumer, topics=SimpleNamespace(acking_topics={"a"}), runner=runner)
    assert [(one.partition, one.end) for one in progress(app)] == [(1, 9)]


def test_what_could_not_be_told_once_is_told_the_next_time() -> None:
    """A report that ended unseen would stop what liveness goes by, and a healthy worker be restarted for it."""
    told = list[int]()

    def tell(_rows: Any) -> None:
        told.append(len(told))
        if len(told) == 1:
            raise RuntimeError("not now")

    async def scene() -> None:
        worker: Any = object.__new__(_Worker)
        worker._apps = []
        reporting = asyncio.ensure_future(worker._report(tell, 0.0))
        while len(told) < 3:
            await asyncio.sleep(0)
        reporting.cancel()

    virtual_time.run(scene())


def test_a_stage_is_ready_once_it_knows_which_partitions_are_its_own() -> None:
    """Nothing is fetched before; whoever balances by readiness would take the worker that had them away too soon."""

    async def scene() -> list[bool]:
        runner = BatchRunner(_spec(), Relabelled(), Faults(), None, NOWHERE)
        HeldFences(runner)
        runner.lanes._make_rows = lambda _partition: None
        await runner.begin({0})
        await asyncio.sleep(0.01)
        ready = [runner.is_ready()]
        await runner.fenced_off()
        ready.append(runner.is_ready())
        await runner.begin({0, 1})
        await asyncio.sleep(0.01)
        ready.append(runner.is_ready())
        await runner.begin(set())
        ready.append(runner.is_ready())
        await runner.stop()
        return ready

    assert virtual_time.run(scene()) == [False, True, False, True]
