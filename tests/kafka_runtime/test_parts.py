"""The parts that need no broker."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP
from mode.utils.queues import FlowControlEvent, ThrowableQueue
from pydantic import SecretStr

from memsluice.deployment.connection import Connection
from memsluice.errors import ConfigError, GapError
from memsluice.events.records import Output
from memsluice.runtimes.kafka.acker import Acker
from memsluice.runtimes.kafka.apps import build_app
from memsluice.runtimes.kafka.batching import BatchRunner
from memsluice.runtimes.kafka.faults import AFTER_OUTPUT, BEFORE_CHANGELOG, Faults
from memsluice.runtimes.kafka.gaps import GapDetector
from memsluice.runtimes.kafka.overrides import GuardedFlow, StageConsumerThread
from memsluice.runtimes.kafka.spec import StageSpec, Tuning
from memsluice.runtimes.kafka.thread import StageThreads

from .dummies import Count, Stamp


class Message(NamedTuple):
    tp: tuple[str, int]
    offset: int


def _messages(partition: int, count: int) -> list[Message]:
    return [Message(("in", partition), offset) for offset in range(count)]


def _run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def test_acks_are_released_in_order_whatever_order_they_are_confirmed_in() -> None:
    """Records 1 and 2 wait for record 0, so a commit never skips one that is not confirmed."""

    async def scene() -> None:
        released: list[Message] = []
        acker = Acker(released.append, lambda error: pytest.fail(repr(error)))
        futures = [asyncio.get_running_loop().create_future() for _ in range(3)]
        for message, future in zip(_messages(0, 3), futures, strict=True):
            acker.add(message, [future])
        futures[2].set_result(None)
        futures[1].set_result(None)
        await asyncio.sleep(0)
        assert released == []
        futures[0].set_result(None)
        await asyncio.sleep(0)
        assert [message.offset for message in released] == [0, 1, 2]
        assert acker.outstanding == 0

    _run(scene())


def test_partitions_do_not_wait_for_each_other() -> None:
    """An unconfirmed send on one partition holds no other partition's commit."""

    async def scene() -> None:
        released: list[Message] = []
        acker = Acker(released.append, lambda error: pytest.fail(repr(error)))
        stuck, fine = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()
        acker.add(_messages(0, 1)[0], [stuck])
        acker.add(_messages(1, 1)[0], [fine])
        fine.set_result(None)
        await asyncio.sleep(0)
        assert [message.tp for message in released] == [("in", 1)]

    _run(scene())


def test_an_older_generation_is_never_acknowledged() -> None:
    """What was in flight when the partitions were revoked is confirmed too late to count."""

    async def scene() -> None:
        released: list[Message] = []
        acker = Acker(released.append, lambda error: pytest.fail(repr(error)))
        old, new = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()
        acker.add(_messages(0, 1)[0], [old])
        acker.clear()
        acker.add(Message(("in", 0), 7), [new])
        old.set_result(None)
        await asyncio.sleep(0)
        assert released == []
        new.set_result(None)
        await asyncio.sleep(0)
        assert [message.offset for message in released] == [7]

    _run(scene())


def test_a_failed_send_ends_the_acknowledging() -> None:
    """Nothing is released after a failure, not even what succeeds before it in the log."""

    async def scene() -> None:
        released: list[Message] = []
        failures: list[BaseException] = []
        acker = Acker(released.append, failures.append)
        first, second = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()
        for message, future in zip(_messages(0, 2), (first, second), strict=True):
            acker.add(message, [future])
        second.set_exception(OSError("refused"))
        await asyncio.sleep(0)
        first.set_result(None)
        await asyncio.sleep(0)
        assert released == []
        assert [str(error) for error in failures] == ["refused"]

    _run(scene())


def test_a_cancelled_send_counts_as_failed() -> None:
    """A send nobody knows the fate of is not a success."""

    async def scene() -> None:
        failures: list[BaseException] = []
        acker = Acker(lambda _: pytest.fail("released"), failures.append)
        future = asyncio.get_running_loop().create_future()
        acker.add(_messages(0, 1)[0], [future])
        future.cancel()
        await asyncio.sleep(0)
        assert len(failures) == 1

    _run(scene())


def test_outstanding_acks_are_bounded() -> None:
    """``below`` holds the sender until there is room, and lets it go then."""

    async def scene() -> None:
        acker = Acker(lambda _: None, lambda error: pytest.fail(repr(error)))
        future = asyncio.get_running_loop().create_future()
        acker.add(_messages(0, 1)[0], [future])
        waiting = asyncio.ensure_future(acker.below(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        future.set_result(None)
        await waiting

    _run(scene())


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
        await faults.reach(AFTER_OUTPUT, [future])
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
    """Offsets are committed up to the first gap: a batch that is ready early waits for the ones before it."""
    second_began, taken = threading.Event(), []

    class Slow:
        def process(self, batch: Any) -> list[list[Output]]:
            if batch[0].offset == 0:
                assert second_began.wait(30)  # cannot come while there is one thread only
            else:
                second_began.set()
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
        runner = BatchRunner(spec, Slow(), Faults())
        runner.begin({0})
        for offset in range(4):
            record = {"topic": "a", "partition": 0, "key": b"k", "value": b"v", "headers": (), "timestamp": 1.0}
            await runner._take(SimpleNamespace(offset=offset, **record))
        jobs = [asyncio.ensure_future(job()) for job in runner._jobs()]
        for _ in range(4):
            taken.append((await runner._results.get()).message.offset)
        for job in jobs:
            job.cancel()
        await runner.stop()

    _run(scene())
    assert taken == [0, 1, 2, 3]


@pytest.mark.parametrize("unconfirmed", [0, 2])
def test_what_was_sent_and_not_confirmed_never_arrives_after_the_next_owner(unconfirmed: int) -> None:
    """Partitions given up with sends under way: the producer is emptied and the worker ends; else it goes on."""
    poisoned: list[BaseException] = []

    async def scene() -> int:
        runner = BatchRunner(_spec(), Relabelled(), Faults())
        runner.app = SimpleNamespace(producer=SimpleNamespace(poison=poisoned.append))
        runner.begin({0})
        runner.held, runner.acker.outstanding = 3, unconfirmed
        generation = runner.generation
        runner._abandon()
        await runner.stop()
        return runner.generation - generation

    assert _run(scene()) == (0 if unconfirmed else 1)
    assert len(poisoned) == (1 if unconfirmed else 0)


def test_a_batch_that_waits_for_its_sink_is_given_up_with_its_partitions() -> None:
    """Its records belong to another worker now: it writes nothing late, and its end is no failure of this worker."""

    class Waiting(Relabelled):
        def __init__(self) -> None:
            self.began, self.given_up = threading.Event(), threading.Event()

        def process(self, batch: Any) -> list[list[Output]]:
            if batch[0].offset == 0:
                self.began.set()
                assert self.given_up.wait(30)
                raise OSError("given up")
            return super().process(batch)

        def give_up(self) -> None:
            self.given_up.set()

    async def scene() -> tuple[BaseException | None, int]:
        stage = Waiting()
        runner = BatchRunner(_spec(), stage, Faults())
        runner.begin({0})
        jobs = [asyncio.ensure_future(job()) for job in runner._jobs()]
        await runner._take(_message(0))
        await asyncio.to_thread(stage.began.wait, 30)
        runner._abandon()
        runner.begin({0})
        await runner._take(_message(7))
        result = await asyncio.wait_for(runner._results.get(), 30)
        for job in jobs:
            job.cancel()
        await runner.stop()
        return runner.failure, result.message.offset

    assert _run(scene()) == (None, 7)


class Relabelled:
    """A batch stage without outputs."""

    def process(self, batch: Any) -> list[list[Output]]:
        """Nothing comes of anything."""
        return [[] for _ in batch]


def _spec() -> StageSpec:
    return StageSpec(name="x", app_id="x", user="x", inputs=("a",), outputs=("c",), kind="batch", stage=Relabelled())


def _message(offset: int) -> SimpleNamespace:
    return SimpleNamespace(offset=offset, topic="a", partition=0, key=b"k", value=b"v", headers=(), timestamp=1.0)


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


@pytest.mark.parametrize("late", ["failure", "success"])
def test_a_send_of_an_older_generation_says_nothing_about_the_next(late: str) -> None:
    """A partition that was given up may come back at once: what its old sends come to ends and releases nothing."""

    async def scene() -> None:
        released: list[Message] = []
        failures: list[BaseException] = []
        acker = Acker(released.append, failures.append)
        old, new = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()
        acker.add(_messages(0, 1)[0], [old])
        acker.clear()
        if late == "failure":
            old.set_exception(OSError("fenced"))
        else:
            old.set_result(None)
        await asyncio.sleep(0)
        acker.add(Message(("in", 0), 7), [new])
        new.set_result(None)
        await asyncio.sleep(0)
        assert failures == []
        assert [message.offset for message in released] == [7]
        assert acker.outstanding == 0

    _run(scene())
