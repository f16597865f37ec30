"""The parts that need no broker."""

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import IllegalStateError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from mode.utils.queues import FlowControlEvent, ThrowableQueue
from pydantic import SecretStr

from memsluice.deployment.connection import Connection
from memsluice.envelope.seals import Waited
from memsluice.errors import ConfigError, GapError, Overtaken
from memsluice.events.records import Output
from memsluice.runtimes.kafka.apps import build_app
from memsluice.runtimes.kafka.batching import BatchRunner, _Item
from memsluice.runtimes.kafka.consumer_thread import StageConsumerThread
from memsluice.runtimes.kafka.delivery import RecordResult
from memsluice.runtimes.kafka.faults import AFTER_OUTPUT, BEFORE_CHANGELOG, Faults
from memsluice.runtimes.kafka.gaps import GapDetector
from memsluice.runtimes.kafka.overflow import Found, Overflow, Way
from memsluice.runtimes.kafka.overrides import GuardedFlow, StageConsumer
from memsluice.runtimes.kafka.spec import StageSpec, Tuning
from memsluice.runtimes.kafka.thread import StageThreads
from memsluice.stages.overflow import Intake
from memsluice.stages.quota import Quota

from . import virtual_time
from .dummies import Count, HeldFences, Stamp
from .harness import HANG_S, NOWHERE


def _run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, HANG_S))


def test_a_jump_in_offsets_is_an_error() -> None:
    """A record that was never delivered ends the worker instead of being passed over."""
    gaps = GapDetector()
    gaps.start("p", 5)
    assert gaps.see("p", 5)
    with pytest.raises(GapError, match="records 6 to 8"):
        gaps.see("p", 9)


def test_a_first_record_after_the_commit_is_an_error() -> None:
    """The committed offset is where the first record has to be: what lies between was lost."""
    gaps = GapDetector()
    gaps.start("p", 3)
    with pytest.raises(GapError, match="records 3 to 3"):
        gaps.see("p", 4)


def test_a_log_that_goes_back_behind_the_commit_is_an_error() -> None:
    """Offsets that are given out anew after a truncation are other records: not to be dropped as repetitions."""
    gaps = GapDetector()
    gaps.start("p", 5)
    assert gaps.see("p", 5)
    with pytest.raises(GapError, match="went back"):
        gaps.see("p", 4)


def test_a_repeated_record_is_dropped_once_and_only_within_its_assignment() -> None:
    """The second copy of a record in work is no new record; after a new assignment it is one."""
    gaps = GapDetector()
    gaps.start("p", 0)
    assert gaps.see("p", 0)
    assert not gaps.see("p", 0)
    gaps.clear()
    assert not gaps.knows("p")
    gaps.start("p", 0)
    assert gaps.see("p", 0)


@pytest.mark.parametrize(("flow_type", "left"), [(FlowControlEvent, 0), (GuardedFlow, 3)])
def test_resuming_a_running_flow_keeps_the_queues(flow_type: type[FlowControlEvent], left: int) -> None:
    """Silent failure A: Faust's resume clears queues of a flow that already runs; the guarded one does not."""

    async def scene() -> int:
        flow = flow_type()
        queue: ThrowableQueue[int] = ThrowableQueue(flow_control=flow, clear_on_resume=True, maxsize=10)
        flow.resume()
        for number in range(3):
            await queue.put(number)
        flow.resume()
        return queue.qsize()

    assert _run(scene()) == left


def test_a_waiting_fetch_keeps_the_partitions_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faust empties the very set it passed while the fetch waits; the fetch must not become one of all partitions."""
    passed: list[set[str]] = []

    async def waiting(_: object, partitions: set[str], timeout: float) -> None:
        await asyncio.sleep(timeout)
        passed.append(set(partitions))

    async def scene() -> None:
        live = {"changelog"}
        fetch = asyncio.ensure_future(StageConsumerThread.getmany(object.__new__(StageConsumerThread), live, 0.01))
        await asyncio.sleep(0)
        live.clear()
        await fetch
        assert passed == [{"changelog"}]

    monkeypatch.setattr(AIOKafkaConsumerThread, "getmany", waiting)
    _run(scene())


class _Fetching:
    """A consumer's thread before a log: committed at 500, read to 525 by a recovery that dropped what it got."""

    def __init__(self, fetch_s: float) -> None:
        self.position, self.fetch_s, self.assigned = 525, fetch_s, {TP("a", 0)}

    async def getmany(self, active_partitions: set[TP], timeout: float) -> dict[TP, list[Any]]:
        """Wait, and return the next five records from wherever the log stands then."""
        await asyncio.sleep(self.fetch_s)
        first, self.position = self.position, self.position + 5
        unset = dict.fromkeys(("checksum", "serialized_key_size", "serialized_value_size"))
        return {
            tp: [
                SimpleNamespace(timestamp_type=1, **vars(_message(offset)), **unset)
                for offset in range(first, first + 5)
            ]
            for tp in active_partitions
        }

    async def seek_to_committed(self) -> dict[TP, int]:
        """Go back to the commit, which takes a while."""
        await asyncio.sleep(0.02)
        self.position = 500
        return dict.fromkeys(self.assigned, 500)

    def assignment(self) -> set[TP]:
        """Return the one partition."""
        return self.assigned

    def highwater(self, tp: TP) -> int:
        """Return some end."""
        return 10_000


@pytest.mark.parametrize("fetch_s", [0, 0.01, 0.03])
def test_nothing_fetched_before_a_seek_is_taken_after_it_began(tmp_path: Path, fetch_s: float) -> None:
    """Faust resumes partitions a moment before it seeks: what is fetched in between lies behind records still due."""

    async def scene() -> list[int]:
        got: list[int] = []

        async def drain() -> None:
            while len(got) < 10:
                async for _, message in consumer.getmany(1.0):
                    got.append(message.offset)
                    await asyncio.sleep(0)

        connection = Connection(
            bootstrap="127.0.0.1:9", users={"x": SecretStr("x")}, weaviate_http_port=1, weaviate_grpc_port=1
        )
        app = build_app(_spec(), connection, data_dir=tmp_path)
        consumer: Any = app.transport.create_consumer(
            callback=drain, on_partitions_revoked=drain, on_partitions_assigned=drain
        )
        consumer._thread = _Fetching(fetch_s)
        consumer.resume_flow()
        consumer.resume_partitions(consumer.assignment())
        seeking, draining = asyncio.create_task(consumer.perform_seek()), asyncio.create_task(drain())
        await seeking
        await draining
        return got

    assert _run(scene())[:10] == list(range(500, 510))


def test_what_waited_for_the_flow_takes_what_it_fetches_after_the_seek(tmp_path: Path) -> None:
    """In a rebalance that takes a while Faust asks for records before the seek and waits for the flow: what it is given
    then was fetched after the seek. Were it dropped, the next record would come with those before it missing."""

    async def scene() -> list[int]:
        got: list[int] = []

        async def drain() -> None:
            while len(got) < 10:
                async for _, message in consumer.getmany(1.0):
                    got.append(message.offset)

        connection = Connection(
            bootstrap="127.0.0.1:9", users={"x": SecretStr("x")}, weaviate_http_port=1, weaviate_grpc_port=1
        )
        app = build_app(_spec(), connection, data_dir=tmp_path)
        consumer: Any = app.transport.create_consumer(
            callback=drain, on_partitions_revoked=drain, on_partitions_assigned=drain
        )
        consumer._thread = _Fetching(0.01)
        consumer.stop_flow()
        draining = asyncio.create_task(drain())
        await asyncio.sleep(0.01)
        consumer.resume_partitions(consumer.assignment())
        await consumer.perform_seek()
        consumer.resume_flow()
        await draining
        return got

    assert _run(scene())[:10] == list(range(500, 510))


@pytest.mark.parametrize("torn", [False, True])
def test_a_recovery_that_a_rebalance_overtakes_lets_nothing_through(tmp_path: Path, torn: bool) -> None:
    """Two rebalances in a row, as where several workers wake up: the first one's seek ends, or fails, when its
    partitions are others' already, and Faust resumes. Records let through then would begin behind those that an earlier
    assignment had read, and be taken for a loss; the next seek lets them through."""

    class Overtaken(_Fetching):
        async def seek_to_committed(self) -> dict[TP, int]:
            found = await super().seek_to_committed()
            if torn and not again:
                raise IllegalStateError("No current assignment for partition")
            return found

    again: list[bool] = []

    async def nothing(*_: Any) -> None:
        pass

    async def scene() -> None:
        connection = Connection(
            bootstrap="127.0.0.1:9", users={"x": SecretStr("x")}, weaviate_http_port=1, weaviate_grpc_port=1
        )
        app = build_app(_spec(), connection, data_dir=tmp_path)
        app.runner = SimpleNamespace(begin=nothing, fenced_off=nothing)
        consumer: Any = app.transport.create_consumer(
            callback=nothing, on_partitions_revoked=nothing, on_partitions_assigned=nothing
        )
        consumer._thread = Overtaken(0)
        consumer.stop_flow()
        await consumer.on_partitions_assigned({TP("a", 0)})
        seeking = asyncio.create_task(consumer.perform_seek())
        await asyncio.sleep(0.01)
        await consumer.on_partitions_assigned({TP("a", 0)})
        await seeking
        consumer.resume_flow()
        assert not consumer.flow_active
        again.append(True)
        await consumer.perform_seek()
        consumer.resume_flow()
        assert consumer.flow_active

    virtual_time.run(scene())


def test_resuming_a_suspended_flow_clears_the_queues() -> None:
    """What was queued before a rebalance belongs to the old assignment and must go."""

    async def scene() -> int:
        flow = GuardedFlow()
        queue: ThrowableQueue[int] = ThrowableQueue(flow_control=flow, clear_on_resume=True, maxsize=10)
        flow.resume()
        await queue.put(1)
        flow.suspend()
        flow.resume()
        return queue.qsize()

    assert _run(scene()) == 0


def test_a_planted_crash_happens_at_its_pass_and_after_its_sends() -> None:
    """The point's name is the truth: what is pending there is confirmed before the process dies."""

    async def scene() -> None:
        deaths: list[bool] = []
        future = asyncio.get_running_loop().create_future()
        faults = Faults(AFTER_OUTPUT, 2, crash=lambda: deaths.append(future.done()))
        await faults.reach(BEFORE_CHANGELOG)
        await faults.reach(AFTER_OUTPUT)
        assert deaths == []
        asyncio.get_running_loop().call_later(0.01, future.set_result, None)
        await faults.reach(AFTER_OUTPUT, lambda: future)
        assert deaths == [True]

    _run(scene())


@pytest.mark.parametrize("text", ["nowhere:1", "after-output-before-commit:x", "after-output-before-commit:0"])
def test_a_mistyped_fault_is_refused(text: str) -> None:
    """A test that plants a crash which can't happen would pass for nothing."""
    with pytest.raises(ConfigError):
        Faults.from_environment({"MEMSLUICE_CRASH_AT": text})


def test_stage_threads_do_not_keep_the_interpreter_alive() -> None:
    """A stage that hangs for ever must not turn SIGTERM into a hang: its threads are daemons."""
    before = set(threading.enumerate())
    threads = StageThreads("t", 2)
    started = set(threading.enumerate()) - before
    assert [each.daemon for each in started] == [True, True]
    threads.close()


def test_batches_in_work_at_once_leave_in_order() -> None:
    """Offsets are committed up to the first gap: a batch that is ready early waits for the ones before it. Its thread
    does not: it takes the next one."""
    fourth_began, taken = threading.Event(), []

    class Slow:
        def process(self, batch: Any) -> list[list[Output]]:
            if batch[0].offset == 0:
                assert fourth_began.wait(HANG_S)  # cannot come while there is one thread only, or each waits for all
            elif batch[0].offset == 6:
                fourth_began.set()
            return [[] for _ in batch]

    async def scene() -> None:
        spec = StageSpec(
            name="x",
            app_id="x",
            user="x",
            inputs=("a",),
            outputs=("c",),
            kind="batch",
            stage=Slow(),
            tuning=Tuning(batch_size=2, threads=2),
        )
        runner = BatchRunner(spec, Slow(), Faults(), None, NOWHERE)
        HeldFences(runner)
        await runner.begin({0})
        jobs = list[Any]()
        for offset in range(8):
            if offset == 6:  # there is no room for more before
                jobs += [asyncio.ensure_future(job()) for job in runner._jobs()]
            record = {"topic": "a", "partition": 0, "key": b"k", "value": b"v", "headers": (), "timestamp": 1.0}
            await runner._take(SimpleNamespace(offset=offset, **record))
        for _ in range(8):
            taken.append((await runner._results.get()).message.offset)
        for job in jobs:
            job.cancel()
        await runner.stop()

    _run(scene())
    assert taken == [0, 1, 2, 3, 4, 5, 6, 7]


def test_what_was_sent_and_not_committed_is_never_acknowledged_after_it_was_given_up() -> None:
    """Its partition is another's, which commits for itself; a late commit must not move the place of that one."""

    async def scene() -> tuple[int, int, list[Any]]:
        released: list[Any] = []
        consumer = SimpleNamespace(
            untrack=released.append, committed_at=lambda *place: released.append(place), known_behind=lambda _: 0
        )
        runner = BatchRunner(_spec(), Relabelled(), Faults(), SimpleNamespace(consumer=consumer), NOWHERE)
        held = HeldFences(runner)
        await runner.begin({0})
        message = _message(0)
        message.tp = ("a", 0)
        await runner.lanes.deliver(RecordResult(message, runner.generation, [Output("c", 0, b"k", b"v")]))
        await held.sent(1)
        outstanding, generation = runner.lanes.outstanding, runner.generation
        runner._abandon()
        held.commits.set()
        await asyncio.sleep(0.01)
        await runner.stop()
        return outstanding, runner.generation - generation, released

    assert _run(scene()) == (1, 1, [])


def test_a_jump_over_a_transactions_marker_is_no_loss() -> None:
    """Records fetched one after another have only markers between them, however far apart their offsets are."""
    gaps = GapDetector()
    gaps.start("p", 5)
    assert gaps.see_after("p", 5, None)
    assert gaps.jump("p", 8) == 2
    assert gaps.see_after("p", 8, 5)
    assert not gaps.see_after("p", 8, 5)


def test_a_record_that_was_fetched_and_did_not_arrive_is_an_error() -> None:
    """The record before this one, in the order of the fetch, was never seen: whoever dropped it, it was lost."""
    gaps = GapDetector()
    gaps.start("p", 5)
    assert gaps.see_after("p", 5, None)
    with pytest.raises(GapError, match="records 6 to 7"):
        gaps.see_after("p", 9, 7)


def test_a_log_that_starts_behind_the_next_record_is_an_error() -> None:
    """Between markers nobody can tell by the offsets what retention removed; the log's own start can."""
    gaps = GapDetector()
    gaps.start("p", 5)
    gaps.starts("p", 5)
    with pytest.raises(GapError, match="records 5 to 6"):
        gaps.starts("p", 7)


@pytest.mark.parametrize(("end", "asked"), [(None, False), (7, False), (8, True)])
def test_an_idle_lane_looks_for_markers_only_where_the_log_goes_on_behind_its_commit(
    end: int | None, asked: bool
) -> None:
    """An idle worker costs the broker nothing: the end is known from the last fetch, and nobody is asked before."""

    async def scene() -> bool:
        looked = []

        async def call_thread(method: Any, *_: Any) -> tuple[int, int]:
            looked.append(method)
            return 7, 6

        thread = SimpleNamespace(call_thread=call_thread, place=None)
        known = SimpleNamespace(_committed_offset={TP("a", 0): 7}, highwater=lambda _: end, _thread=thread)
        assert await StageConsumer.place_if_idle(cast(Any, known), TP("a", 0)) is None
        return bool(looked)

    assert _run(scene()) is asked


def test_a_partition_that_went_to_another_meanwhile_is_not_idle() -> None:
    """aiokafka asserts that a partition is assigned: in the midst of a rebalance that ended the worker."""

    def highwater(_tp: Any) -> int:
        raise AssertionError("Partition is not assigned")

    known = SimpleNamespace(_committed_offset={TP("a", 0): 7}, highwater=highwater, _thread=None)
    assert _run(StageConsumer.place_if_idle(cast(Any, known), TP("a", 0))) is None


def test_what_was_fetched_and_never_committed_is_not_idle_and_markers_alone_are() -> None:
    """The first transaction of a partition may be aborted: what it left is no record, and is behind nobody for ever."""

    async def scene(place: int, last: int | None) -> int | None:
        async def call_thread(*_: Any) -> tuple[int, int | None]:
            return place, last

        thread = SimpleNamespace(call_thread=call_thread, place=None)
        known = SimpleNamespace(_committed_offset={}, highwater=lambda _: 2, _thread=thread)
        return await StageConsumer.place_if_idle(cast(Any, known), TP("a", 0))

    assert _run(scene(2, None)) == 2
    assert _run(scene(2, 0)) is None
    assert _run(scene(0, None)) is None


def test_what_a_lane_has_committed_is_in_no_book_of_fausts(tmp_path: Path) -> None:
    """Between any two transactions is a marker. Faust's search through the gaps fell behind by thousands of offsets
    under load: it kept them all, and an idle stage seemed to lag for minutes."""

    async def nothing(*_: Any) -> None:
        pass

    async def scene() -> tuple[int, int, int]:
        connection = Connection(
            bootstrap="127.0.0.1:9", users={"x": SecretStr("x")}, weaviate_http_port=1, weaviate_grpc_port=1
        )
        app = build_app(_spec(), connection, data_dir=tmp_path)
        app.topics.acks_enabled_for = lambda _: True
        consumer: Any = app.transport.create_consumer(
            callback=nothing, on_partitions_revoked=nothing, on_partitions_assigned=nothing
        )
        where = TP("a", 0)
        message = ConsumerMessage(where.topic, where.partition, 2, 0.0, 1, [], b"k", b"v", None, tp=where)
        message.incref()
        consumer.track_message(message)
        await consumer._add_gap(where, 1, 2)
        message.ack(consumer)
        return len(consumer._acked[where]), len(consumer._gap[where]), len(consumer._unacked_messages)

    assert _run(scene()) == (0, 0, 0)


@pytest.mark.parametrize(("start", "place"), [(5, 9), (8, 9), (9, None)])
def test_an_idle_lane_does_not_pass_over_what_retention_removed_unread(start: int, place: int | None) -> None:
    """Behind the last record markers alone may be passed; a log that begins further on has lost records."""

    async def scene() -> int | None:
        async def call_thread(*_: Any) -> tuple[int, int]:
            return 9, 6

        async def log_start(*_: Any) -> int:
            return start

        known = SimpleNamespace(
            _committed_offset={TP("a", 0): 7},
            highwater=lambda _: 9,
            _thread=SimpleNamespace(call_thread=call_thread, place=None),
            log_start=log_start,
        )
        return await StageConsumer.place_if_idle(cast(Any, known), TP("a", 0))

    assert _run(scene()) == place


def test_a_batch_that_waits_for_its_sink_is_given_up_with_its_partitions() -> None:
    """Its records belong to another worker now: it writes nothing late, and its end is no failure of this worker."""

    class Waiting(Relabelled):
        def __init__(self) -> None:
            self.began, self.given_up = threading.Event(), threading.Event()

        def process(self, batch: Any) -> list[list[Output]]:
            if batch[0].offset == 0:
                self.began.set()
                assert self.given_up.wait(HANG_S)
                raise OSError("given up")
            return super().process(batch)

        def give_up(self) -> None:
            self.given_up.set()

        def refused_s(self) -> float:
            return 0.0

    async def scene() -> tuple[BaseException | None, int]:
        stage = Waiting()
        runner = BatchRunner(_spec(), stage, Faults(), None, NOWHERE)
        HeldFences(runner)
        await runner.begin({0})
        jobs = [asyncio.ensure_future(job()) for job in runner._jobs()]
        await runner._take(_message(0))
        await asyncio.to_thread(stage.began.wait, HANG_S)
        runner._abandon()
        await runner.begin({0})
        await runner._take(_message(7))
        result = await runner._results.get()
        for job in jobs:
            job.cancel()
        await runner.stop()
        return runner.failure, result.message.offset

    assert _run(scene()) == (None, 7)


def test_a_stage_is_told_which_partitions_are_its_own_once_they_are_fenced() -> None:
    """*land* reads what its predecessor published: before the fence that could still grow, and after a revocation
    or a stop nothing is its own."""

    class Owner(Relabelled):
        owned: tuple[set[int], ...] = ()

        def owns(self, partitions: Any) -> None:
            self.owned = (*self.owned, set(partitions))

    async def scene() -> tuple[set[int], ...]:
        stage = Owner()
        runner = BatchRunner(_spec(), stage, Faults(), None, NOWHERE)
        HeldFences(runner)
        await runner.begin({0, 1})
        before = stage.owned
        await runner.fenced_off()
        await runner.revoked({0, 1})
        await runner.begin({1})
        await runner.fenced_off()
        await runner.stop()
        assert before == ()
        return stage.owned

    assert _run(scene()) == ({0, 1}, set(), {1}, set())


class Relabelled:
    """A batch stage without outputs."""

    def process(self, batch: Any) -> list[list[Output]]:
        """Nothing comes of anything."""
        return [[] for _ in batch]


def _spec() -> StageSpec:
    return StageSpec(name="x", app_id="x", user="x", inputs=("a",), outputs=("c",), kind="batch", stage=Relabelled())


def _message(offset: int, partition: int = 0) -> SimpleNamespace:
    return SimpleNamespace(
        offset=offset, topic="a", partition=partition, key=b"k", value=b"v", headers=(), timestamp=1.0, before=None
    )


def test_stage_threads_carry_results_and_errors() -> None:
    """What the stage raises arrives at the caller, StopIteration included, which a future can't hold."""

    def broken() -> None:
        raise StopIteration

    async def scene() -> None:
        threads = StageThreads("t")
        assert await threads.submit(lambda a, b: a + b, 2, 3) == 5
        with pytest.raises(ZeroDivisionError):
            await threads.submit(lambda: 1 // 0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.submit(broken)
        threads.close()

    _run(scene())


def test_a_stateful_stage_has_one_input() -> None:
    """Rows belong to the partitions of one topic; two inputs would share them."""
    with pytest.raises(ConfigError, match="exactly one input"):
        StageSpec(name="x", app_id="x", user="x", inputs=("a", "b"), outputs=("c",), kind="stateful", stage=Count("c"))


@pytest.mark.parametrize(
    "bad", [{"batch_size": 0}, {"batch_size": 2000}, {"threads": 0}, {"in_flight": 0}, {"drain_s": 30.0}]
)
def test_tuning_out_of_range_is_refused(bad: dict[str, Any]) -> None:
    """Every bound is checked where it is set; a drain longer than the rebalance would cost the membership."""
    with pytest.raises(ConfigError):
        Tuning(**bad)


def test_a_spec_takes_a_stage_or_its_factory() -> None:
    """Heavy stages are made at start, light ones may be given as they are."""
    stage = Stamp("c")
    common: dict[str, Any] = {"name": "x", "app_id": "x", "user": "x", "inputs": ("a",), "outputs": ("c",)}
    assert StageSpec(**common, kind="batch", stage=stage).make() is stage
    assert isinstance(StageSpec(**common, kind="batch", stage=lambda: Stamp("c")).make(), Stamp)


class Overflowing(Relabelled):
    """A batch stage one of whose tenants waits."""

    def quota(self, tenant: str) -> Quota:
        """Return a quota of one event."""
        return Quota(1, 1)

    def lane(self, record: Any) -> str:
        """Return the only tenant."""
        return "acme"

    def came(self, record: Any) -> Intake:
        """Return the record as it came."""
        return Intake(record, "acme", Waited(0, None))

    def is_counted(self, topic: str) -> bool:
        """Tell that everything is."""
        return True

    def sender(self, outputs: Any) -> str | None:
        """Return the only tenant."""
        return "acme"

    def may_wait(self, record: Any, tenant: str) -> bool:
        """Tell that everything may."""
        return True


def test_the_last_event_that_waits_is_overtaken_by_none_while_there_is_no_room() -> None:
    """Until it is queued its tenant still waits: what the intake has meanwhile does not go straight on before it."""

    async def scene() -> list[tuple[int, Way | None]]:
        spec = replace(_spec(), inputs=("a", "o"), outputs=("c", "o"), stage=Overflowing(), overflow="o")
        runner = BatchRunner(spec, Overflowing(), Faults(), SimpleNamespace(consumer=None), NOWHERE)
        HeldFences(runner)
        runner.lanes._make_rows = lambda _partition: None
        await runner.begin({0})
        assert runner.overflow is not None
        runner.overflow._found(0, Found(Counter({"acme": 1}), None))
        room = (1 + spec.tuning.threads) * spec.tuning.batch_size
        runner._queue.extend(_Item(runner.generation, _message(number)) for number in range(room))
        intake = asyncio.ensure_future(runner._queue_up(runner.generation, _message(8), runner._choose))
        await asyncio.sleep(0)
        runner.overflow.hold(runner.generation, _message(5))
        going_on = asyncio.ensure_future(runner._go_on())
        await asyncio.sleep(0.01)
        runner._queue.clear()
        runner._room.set()
        await intake
        while runner.overflow.due() != (None, None) or len(runner._queue) < 2:
            await asyncio.sleep(0.01)
        queued = [(item.message.offset, item.chosen and item.chosen.way) for item in runner._queue]
        going_on.cancel()
        await runner.stop()
        return queued

    assert virtual_time.run(scene()) == [(8, Way.MOVED), (5, Way.WAITED)]


def test_a_partition_that_is_being_restored_is_not_fetched_and_holds_up_no_other() -> None:
    """What has come of it would stand before what has come of the others, until its rows are there."""

    async def scene() -> tuple[bool, bool, bool]:
        runner = BatchRunner(_spec(), Relabelled(), Faults(), None, NOWHERE)
        HeldFences(runner)
        gate = asyncio.Event()

        async def restore(_given_up: Any) -> None:
            await gate.wait()

        runner.lanes._make_rows = lambda partition: (  # type: ignore[assignment]
            SimpleNamespace(restore=restore, restoring=False) if partition == 1 else None
        )
        await runner.begin({0, 1})
        await runner.fenced_off()
        await asyncio.sleep(0.01)
        before = runner.held_back("a", 0), runner.held_back("a", 1)
        gate.set()
        await asyncio.sleep(0.01)
        after = runner.held_back("a", 1)
        await runner.stop()
        return *before, after

    assert virtual_time.run(scene()) == (False, True, False)


def test_an_event_that_overtakes_those_that_wait_makes_the_stage_begin_anew() -> None:
    """Its key was issued between two looks at it: it was let straight on as nobody's, and is the tenant's after all."""

    async def scene() -> None:
        stage = Overflowing()
        stage.may_wait = lambda _record, _tenant: False  # type: ignore[method-assign]
        overflow = Overflow("o", stage, lambda: 0.0, 0)
        overflow._found(0, Found(Counter({"acme": 1}), None))
        chosen = overflow.choose(_message(9))
        assert chosen is not None
        assert chosen.way is Way.REFUSED
        with pytest.raises(Overtaken, match="a key of acme became known"):
            overflow.answered(_message(9), chosen, [])
        stage.sender = lambda _outputs: None  # type: ignore[method-assign]
        overflow.answered(_message(9), chosen, [])

    _run(scene())
