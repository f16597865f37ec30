"""The parts of parking, without a broker: what is dropped, what goes on, which orders count."""

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from aiokafka.errors import KafkaTimeoutError
from faust.types import TP

from memsluice.deployment.connection import Connection
from memsluice.envelope import dsse
from memsluice.envelope.codec import canonical
from memsluice.envelope.keys import KeyState, Purpose
from memsluice.envelope.partition_orders import (
    ACKNOWLEDGE,
    RESUME,
    Missing,
    PartitionOrder,
    PartitionState,
    order_from_bytes,
    order_key,
    order_to_bytes,
    state_from_bytes,
    state_to_bytes,
)
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Waited
from memsluice.errors import BeginAnew, BrokerUnavailable, Fenced, GapError, NotCommitted, SealError, StateError
from memsluice.events.names import PARTITION_ORDER
from memsluice.events.records import Output, Record, RowChange, Rows
from memsluice.keystore.store import DAY_MS, KeyStore, issue_credential
from memsluice.runtimes.kafka import board as board_module
from memsluice.runtimes.kafka.apps import build_app
from memsluice.runtimes.kafka.batching import BatchRunner, _Item
from memsluice.runtimes.kafka.board import Board
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.gaps import GapDetector
from memsluice.runtimes.kafka.overrides import IN_WORK_BYTES_MAX
from memsluice.runtimes.kafka.parking import parked, parks, way_on
from memsluice.runtimes.kafka.progress import stage_progress
from memsluice.runtimes.kafka.spec import StageSpec, Tuning
from memsluice.runtimes.kafka.state import StateRows
from memsluice.runtimes.kafka.stateful import StatefulRunner
from memsluice.stages.base import Step
from memsluice.stages.overflow import Intake
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.stage_wrappers import ObservedBatch, Watch

from .dummies import HeldFences, Quotas, Stamp
from .harness import HANG_S, NOWHERE

NOW_MS = 1_790_000_000_000
ZERO, ONE = TP("a", 0), TP("a", 1)


def _state(missing: Missing | None = None, failure: str = "f1") -> PartitionState:
    return PartitionState("screen", 3, True, failure, "GapError", "why", "a", 7, missing, NOW_MS, "0")


def _order(state: PartitionState, missing: Missing | None = None) -> PartitionOrder:
    action = RESUME if missing is None else ACKNOWLEDGE
    return PartitionOrder(action, state.stage, state.partition, state.failure, missing, "why", NOW_MS)


def _gate(folder: Path) -> KeyStore:
    keys = KeyStore.init(folder, NOW_MS)
    issue_credential(keys, Role.OPERATOR, "operator", ["*"], now_ms=NOW_MS, days=1, kid="op")
    return keys


def _signed(keys: KeyStore, order: PartitionOrder, kid: str = "op") -> bytes:
    return order_to_bytes(keys.credential(kid).signer(), order)


# --- what is parked for ---


@pytest.mark.parametrize("error", [GapError("a"), StateError("b"), SealError("c")])
def test_an_error_of_one_partition_parks_it(error: Exception) -> None:
    """These are known to be about a record, or about the rows of its partition."""
    assert parks(error)


@pytest.mark.parametrize("error", [Fenced("a"), NotCommitted("a"), ValueError("b"), KeyError("c")])
def test_any_other_error_does_not(error: Exception) -> None:
    """A stage that is shut out, or whose transaction was broken off, begins anew; what nobody knows ends the worker."""
    assert not parks(error)


def test_the_way_on_names_the_records_that_are_missing() -> None:
    """Whoever is woken copies a command; no loss can be acknowledged where none is known."""
    gap = parked("screen", 3, "a", 7, GapError("gone", topic="a", first=4, last=6), NOW_MS, "0")
    assert gap.missing == Missing("a", 4, 6)
    assert "memsluice partition acknowledge-gap screen 3 --from 4 --to 6" in way_on(gap)
    other = parked("screen", 3, "a", 7, StateError("rows"), NOW_MS, "0")
    assert (other.missing, way_on(other)) == (None, "memsluice partition resume screen 3")


def test_the_same_failure_twice_has_two_ids() -> None:
    """Else an order given once would be obeyed whenever the same thing happens again."""
    twice = [parked("screen", 3, "a", 7, StateError("rows"), NOW_MS, "0").failure for _ in range(2)]
    assert twice[0] != twice[1]


# --- gaps ---


def test_an_acknowledged_gap_is_passed_once_and_no_other_one() -> None:
    """Exactly what somebody answered for: the rest of a longer gap is missing still, and so is the next one."""
    gaps = GapDetector()
    gaps.start(ONE, 5)
    gaps.acknowledge(ONE, Missing("a", 5, 7))
    with pytest.raises(GapError, match="records 8 to 9") as caught:
        gaps.see(ONE, 10)
    assert (caught.value.topic, caught.value.first, caught.value.last) == ("a", 8, 9)
    assert gaps.see(ONE, 8)
    assert gaps.see(ONE, 9)
    with pytest.raises(GapError, match="records 10 to 12"):
        gaps.see(ONE, 13)


@pytest.mark.parametrize("known", [Missing("a", 4, 7), Missing("a", 6, 7), Missing("a", 5, 9)])
def test_a_gap_that_is_not_the_acknowledged_one_is_an_error(known: Missing) -> None:
    """It has to begin at the record that is due, and may not reach over one that is there."""
    gaps = GapDetector()
    gaps.start(ONE, 5)
    gaps.acknowledge(ONE, known)
    with pytest.raises(GapError, match="records 5 to 7"):
        gaps.see(ONE, 8)


def test_a_log_that_starts_behind_an_acknowledged_gap_goes_on() -> None:
    """A transactional topic, whose loss the log's start tells."""
    gaps = GapDetector()
    gaps.start(ONE, 5)
    gaps.acknowledge(ONE, Missing("a", 5, 6))
    gaps.starts(ONE, 7)
    assert gaps.see_after(ONE, 7, None)


def test_a_partition_that_is_forgotten_leaves_the_others_as_they_were() -> None:
    """What was acknowledged about it goes too."""
    gaps = GapDetector()
    for tp in (ZERO, ONE):
        gaps.start(tp, 5)
        gaps.acknowledge(tp, Missing("a", 5, 6))
    gaps.forget(ONE)
    assert gaps.see(ZERO, 7)
    assert not gaps.knows(ONE)
    gaps.start(ONE, 5)
    with pytest.raises(GapError):
        gaps.see(ONE, 7)


# --- orders ---


def test_an_order_says_who_signed_it(tmp_path: Path) -> None:
    """What is read is what was signed, and the key id goes into the log."""
    keys = _gate(tmp_path)
    for order in (_order(_state()), _order(_state(), Missing("a", 4, 6))):
        assert order_from_bytes(keys, _signed(keys, order), NOW_MS) == (order, "op")


def test_an_order_counts_from_an_operator_for_all_tenants_alone(tmp_path: Path) -> None:
    """A partition has events of many tenants, and the gate's own keys name nobody who could be asked."""
    keys, order = _gate(tmp_path), _order(_state())
    issue_credential(keys, Role.REVIEWER, "operator", ["*"], now_ms=NOW_MS, kid="rev")
    issue_credential(keys, Role.OPERATOR, "operator", ["acme"], now_ms=NOW_MS, kid="one")
    ring = keys.load_keyring()
    seal = ring.direct(ring.signing(Purpose.SEAL, NOW_MS).kid)
    both = dsse.sign(
        PARTITION_ORDER, canonical(asdict(order)), [keys.credential(kid).signer() for kid in ("op", "rev")]
    )
    for data in (
        _signed(keys, order, "rev"),
        _signed(keys, order, "one"),
        order_to_bytes(seal, order),
        canonical(both),
    ):
        with pytest.raises(SealError, match="does not verify"):
            order_from_bytes(keys, data, NOW_MS)
    with pytest.raises(SealError, match="signing period"):
        order_from_bytes(keys, _signed(keys, order), NOW_MS + DAY_MS)
    keys.save_keyring(ring.with_key(replace(ring.get("op"), state=KeyState.REVOKED)))
    with pytest.raises(SealError, match="revoked"):
        order_from_bytes(keys, _signed(keys, order), NOW_MS)


def test_an_order_that_another_gate_signed_is_refused(tmp_path: Path) -> None:
    """Whoever may write to the topic may not order anything by that."""
    data, home = _signed(_gate(tmp_path / "elsewhere"), _order(_state())), _gate(tmp_path / "home")
    for bad in (data, data[:-9], b"", None, b"{}", b"[1]"):
        with pytest.raises(SealError):
            order_from_bytes(home, bad, NOW_MS)


def test_what_is_no_order_is_refused_though_it_is_signed(tmp_path: Path) -> None:
    """An acknowledgement without records, or a resume with some, says two things."""
    keys = _gate(tmp_path)
    for order in (
        replace(_order(_state()), action=ACKNOWLEDGE),
        replace(_order(_state(), Missing("a", 1, 2)), action=RESUME),
        replace(_order(_state()), action=cast(Any, "skip")),
        replace(_order(_state()), partition=cast(Any, "3")),
    ):
        with pytest.raises(SealError, match="not of this version"):
            order_from_bytes(keys, _signed(keys, order), NOW_MS)


def test_orders_about_one_partition_do_not_take_each_others_place() -> None:
    """The topic is compacted, and who accepted a loss must be told for good."""
    state, gap = _state(), Missing("a", 4, 6)
    orders = (_order(state), _order(state, gap), _order(_state(failure="f2"), gap))
    assert len({order_key(order) for order in orders}) == 3


def test_a_state_is_read_as_it_was_told_and_anything_else_is_none() -> None:
    """The topic holds what its writers wrote; a list of parked partitions must not end at one bad record."""
    for state in (_state(), _state(Missing("a", 4, 6))):
        assert state_from_bytes(state_to_bytes(state)) == state
    for bad in (None, b"", b"x", b"[]", b"{}", b'{"missing": 3}', state_to_bytes(_state()).replace(b"true", b'"x"')):
        assert state_from_bytes(bad) is None


@pytest.mark.parametrize(
    ("order", "told"),
    [
        (_order(_state(failure="f0")), "another failure"),
        (replace(_order(_state()), partition=4), "another failure"),
        (replace(_order(_state()), stage="land"), "another failure"),
        (_order(_state(), Missing("a", 4, 7)), "other records"),
        (_order(_state(), Missing("b", 4, 6)), "other records"),
    ],
)
def test_a_worker_obeys_no_order_about_anything_else(tmp_path: Path, order: PartitionOrder, told: str) -> None:
    """Signed well, and of another failure, or about more than what is missing."""
    keys = _gate(tmp_path)
    board = Board(replace(_spec(), keys=keys), NOWHERE)
    state = _state(Missing("a", 4, 6))
    with pytest.raises(SealError, match=told):
        board._verified(Record("s", 0, 0, b"k", _signed(keys, order), (), NOW_MS), state)
    good = _order(state, state.missing)
    assert board._verified(Record("s", 0, 1, b"k", _signed(keys, good), (), NOW_MS), state)[0] == good


# --- what goes on ---


def _spec(**options: Any) -> StageSpec:
    return StageSpec(
        name="screen",
        app_id="x",
        user="admin",
        inputs=("a",),
        outputs=("c",),
        kind="batch",
        stage=Stamp("c"),
        **options,
    )


class _Message:
    """A message as Faust hands it over."""

    def __init__(self, tp: TP, offset: int, turn: int = 0) -> None:
        self.tp, self.topic, self.partition, self.offset, self.turn = tp, tp.topic, tp.partition, offset, turn
        self.key, self.value, self.headers, self.timestamp, self.before = b"k", b"%d" % offset, (), float(offset), None


class _Consumer:
    """Notes what the runner asks of it; every partition was committed up to ``base`` when it was asked last."""

    def __init__(self) -> None:
        self.base = 0
        self.dropped: list[tuple[int, int]] = []
        self.partitions: list[int] = []
        self.reopened: list[Any] = []
        self.committed: dict[tuple[str, int], int] = {}

    async def base_offset(self, tp: Any) -> tuple[int, bool]:
        return self.base, True

    def known_commit(self, tp: Any) -> int | None:
        return self.committed.get((tp.topic, tp.partition))

    async def reopen(self, tps: list[Any]) -> None:
        self.reopened += tps

    def committed_at(self, tp: Any, place: int) -> None:
        self.committed[tp.topic, tp.partition] = place

    def known_behind(self, _: Any) -> int:
        return 0

    def untrack(self, message: Any) -> None:
        self.dropped.append((message.partition, message.offset))

    def untrack_partition(self, partition: int) -> None:
        self.partitions.append(partition)


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class _App:
    """What a runner needs of its app."""

    def __init__(self) -> None:
        self.consumer = _Consumer()


def _batch(app: _App) -> BatchRunner:
    patient = Tuning(drain_s=HANG_S, rebalance_s=2 * HANG_S, stop_s=2 * HANG_S)  # its batches go through a real thread
    return BatchRunner(_spec(tuning=patient), Stamp("c"), Faults(), app, NOWHERE)


async def _accept(runner: Any, messages: Iterable[_Message]) -> None:
    for message in messages:
        await runner._accept(message)


@pytest.mark.parametrize(("known", "taken_over"), [(3, True), (9, False)])
def test_a_worker_that_reads_what_another_one_committed_meanwhile_begins_anew(known: int, taken_over: bool) -> None:
    """It was away and does not know it yet: nothing went back, and nobody is told to restore a topic. Where the commit
    is the one that it began to read from, the log itself is what went back."""

    async def scene() -> None:
        app = _App()
        runner = _batch(app)
        HeldFences(runner)
        await runner.begin({0})
        app.consumer.base, app.consumer.committed["a", 0] = 9, known
        if taken_over:
            with pytest.raises(Fenced, match=r"a\[0\] was committed up to 9"):
                await runner._accept(_Message(ZERO, 3))
        else:
            await runner._accept(_Message(ZERO, 3))
        assert (0 in runner.parked) is not taken_over

    asyncio.run(scene())


def test_a_gap_parks_its_partition_and_the_other_one_is_acknowledged() -> None:
    """What was taken of it is dropped; held records, the oldest one and the drain count the others alone."""

    async def scene() -> None:
        app = _App()
        runner, consumer = _batch(app), app.consumer
        held = HeldFences(runner)
        await runner.begin({0, 1})
        await _accept(runner, [_Message(ONE, 0), _Message(ZERO, 0), _Message(ZERO, 1), _Message(ONE, 1)])
        assert (runner.held, runner.oldest_ms()) == (4, 0)
        await _accept(runner, [_Message(ONE, 5), _Message(ONE, 6), _Message(ZERO, 2)])
        state = runner.parked[1]
        assert (state.missing, state.offset, state.error) == (Missing("a", 2, 4), 5, "GapError")
        assert (runner.held, consumer.partitions, consumer.dropped) == (3, [1], [(1, 5), (1, 6)])
        runner.start()
        held.commits.set()
        await asyncio.wait_for(runner.drain(), HANG_S)
        assert consumer.committed == {("a", 0): 3}
        assert (runner.held, runner.failure) == (0, None)
        await runner.stop()

    asyncio.run(scene())


def test_what_was_in_work_when_its_partition_was_parked_is_never_acknowledged() -> None:
    """Also not after the partition was begun anew: a late confirmation would move the commit over what is due."""

    async def scene() -> None:
        app = _App()
        runner, consumer = _batch(app), app.consumer
        held = HeldFences(runner)
        await runner.begin({0, 1})
        runner.start()
        await _accept(runner, [_Message(ONE, 0), _Message(ZERO, 0)])
        await held.sent(2)
        runner.park(1, GapError("gone", topic="a", first=1, last=1), "a", 2)
        assert runner.lanes.outstanding == 1
        failure = runner.parked[1].failure
        assert not await runner.resume("another failure", 1)
        assert 1 in runner.parked
        assert await runner.resume(failure, 1, Missing("a", 1, 1))
        assert consumer.reopened == [ONE]
        runner.turns[1] = 1  # as the consumer does
        held.commits.set()
        while not consumer.committed:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        assert consumer.committed == {("a", 0): 1}
        consumer.dropped.clear()
        await _accept(runner, [_Message(ONE, 7), _Message(ONE, 0, turn=1), _Message(ONE, 2, turn=1)])
        assert consumer.dropped == [(1, 7)]
        assert (runner.held, runner.parked) == (2, {})
        await runner.stop()

    asyncio.run(scene())


def test_a_loss_that_was_acknowledged_holds_while_the_next_one_is(tmp_path: Path) -> None:
    """A loss of the stage's own input is one of the intake's, too: with the second order both are passed."""

    async def scene() -> None:
        stage = _Picky(GapError("intake: offset 9 after 6", topic="intake", first=7, last=8))
        runner = _stateful(tmp_path, stage)
        await _accept(runner, [_Message(ONE, 0), _Message(ONE, 3)])
        assert runner.parked[1].missing == Missing("a", 1, 2)
        assert await runner.resume(runner.parked[1].failure, 1, Missing("a", 1, 2))
        runner._gaps.start(ONE, 1)  # as the committed offset says
        runner.park(1, stage.error, "a", 3)
        assert await runner.resume(runner.parked[1].failure, 1, Missing("intake", 7, 8))
        runner._gaps.start(ONE, 1)
        assert runner._gaps.see(ONE, 3)
        assert stage.known == [(1, Missing("intake", 7, 8))]
        await runner.begin({0, 1})  # a rebalance between the orders, or after them
        runner._gaps.start(ONE, 1)
        assert runner._gaps.see(ONE, 3)
        assert stage.known[1:] == [(1, Missing("intake", 7, 8))]
        await runner.stop()

    asyncio.run(scene())


class _Disbelieving(Quotas):
    """A stage with an overflow, and a key that is revoked while its records are held back."""

    def __init__(self) -> None:
        super().__init__("c", "o", 1, 1)
        self.revoked = False

    def came(self, record: Record) -> Intake:
        if self.revoked and record.partition == 1:
            raise SealError("its key was revoked")
        return Intake(record, "acme", Waited(0, None))


def test_what_waited_and_is_not_believed_any_more_parks_its_partition_alone() -> None:
    """It was believed when it was held back. The others of its batch are worked on once more, in their order."""

    async def scene() -> None:
        app, stage = _App(), _Disbelieving()
        spec = replace(_spec(), inputs=("a", "o"), outputs=("c", "o"), stage=stage, overflow="o")
        runner = BatchRunner(spec, stage, Faults(), app, NOWHERE)
        HeldFences(runner)
        runner.lanes._make_rows = lambda _partition: None
        await runner.begin({0, 1})
        assert runner.overflow is not None
        moved = [_Message(TP("o", number), 4) for number in (0, 1)]
        for message in moved:
            runner.overflow.hold(runner.generation, message)
        stage.revoked = True
        items = [_Item(runner.generation, one) for one in (_Message(ONE, 7), *moved, _Message(ZERO, 9))]
        kept, outputs = await runner._returned(items, runner._submit(items))
        assert [(item.message.topic, item.message.offset) for item in kept] == [("o", 4), ("a", 9)]
        assert len(outputs) == 2
        assert [(number, one.topic, one.offset) for number, one in runner.parked.items()] == [(1, "o", 4)]
        assert runner.failure is None
        await runner.stop()

    asyncio.run(scene())


class _Picky:
    """A stateful stage that does not take the value 1 of partition 1."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.forgotten: list[int] = []
        self.known: list[tuple[int, Missing]] = []

    def process(self, record: Record, rows: Rows) -> Step:
        if record.partition == 1 and record.value == b"1":
            raise self.error
        return Step((Output("c", record.partition, b"k", b"v"),), (RowChange(b"p", record.value),))

    def acknowledge(self, partition: int, missing: Missing) -> None:
        self.known.append((partition, missing))

    def forget(self, partition: int) -> None:
        self.forgotten.append(partition)


def _stateful(tmp_path: Path, stage: _Picky) -> StatefulRunner:
    spec = StageSpec(
        name="screen", app_id="x", user="admin", inputs=("a",), outputs=("c",), kind="stateful", stage=stage
    )
    runner = StatefulRunner(spec, stage, Faults(), _App(), NOWHERE, tmp_path)
    runner.draining = False
    for partition in (0, 1):
        runner.state.open(partition)
        runner._gaps.start(TP("a", partition), 0)
    return runner


def test_a_record_that_does_not_fit_the_rows_parks_its_partition(tmp_path: Path) -> None:
    """Its uncommitted rows and what the stage had cached go; the other partition's stay. An order reaches the stage."""

    async def scene() -> None:
        stage = _Picky(GapError("intake: offset 9 after 6", topic="intake", first=7, last=8))
        runner = _stateful(tmp_path, stage)
        await _accept(runner, [_Message(tp, offset) for offset in (0, 1) for tp in (ZERO, ONE)])
        assert (runner.failure, list(runner.parked), runner.held) == (None, [1], 2)
        assert runner.state.rows(0).get(b"p") == b"1"
        assert runner.state.rows(1).get(b"p") is None
        assert stage.forgotten == [1]
        assert await runner.resume(runner.parked[1].failure, 1, Missing("intake", 7, 8))
        assert stage.known == [(1, Missing("intake", 7, 8))]
        await runner.stop()

    asyncio.run(scene())


def test_an_order_that_a_rebalance_overtakes_is_remembered() -> None:
    """Its answer is carried out as the partition begins anew: nobody is asked for the same one twice."""

    async def scene() -> None:
        app = _App()
        runner, consumer = _batch(app), app.consumer
        HeldFences(runner).commits.set()
        await runner.begin({0, 1})
        runner.start()
        runner.park(1, GapError("gone", topic="a", first=1, last=1), "a", 2)

        async def overtaken(_: Any) -> None:
            await runner.begin({0, 1})

        consumer.reopen = overtaken  # type: ignore[method-assign]
        assert not await runner.resume(runner.parked[1].failure, 1, Missing("a", 1, 1))
        runner.parked.clear()  # as a new assignment does
        await _accept(runner, [_Message(ONE, 0), _Message(ONE, 2)])
        assert not runner.parked
        await runner.stop()

    asyncio.run(scene())


def test_a_stage_forgets_what_it_said_of_a_partition_that_goes_on() -> None:
    """Its outputs were dropped as it was parked: what the stage took for said was never committed."""

    class Remembers:
        forgotten: ClassVar[list[int]] = []

        def process(self, batch: Any) -> list[list[Any]]:
            return [[] for _ in batch]

        def forget(self, partition: int) -> None:
            self.forgotten.append(partition)

    async def scene() -> None:
        app = _App()
        runner = _batch(app)
        runner.stage = ObservedBatch(Remembers(), Watch("land", Meters(), None))
        HeldFences(runner).commits.set()
        await runner.begin({0, 1})
        runner.start()
        runner.park(1, GapError("gone", topic="a", first=1, last=1), "a", 2)
        assert await runner.resume(runner.parked[1].failure, 1)
        assert Remembers.forgotten == [1]
        await runner.stop()

    asyncio.run(scene())


def test_an_error_that_nobody_knows_ends_the_worker(tmp_path: Path) -> None:
    """A defect is no property of one partition: nothing is acknowledged past it, anywhere."""

    async def scene() -> None:
        runner = _stateful(tmp_path, _Picky(ValueError("a defect")))
        await runner._guard(lambda: _accept(runner, [_Message(ONE, 0), _Message(ONE, 1)]))
        assert isinstance(runner.failure, ValueError)
        assert not runner.parked
        await runner.stop()

    asyncio.run(scene())


def test_rows_that_can_not_be_restored_park_their_partition(tmp_path: Path) -> None:
    """Told by the lane, before the first record; an error that nobody knows ends the worker as before."""

    async def scene() -> None:
        runner = _stateful(tmp_path, _Picky(ValueError()))
        runner._fail_partition(1, StateError("the local rows stand ahead"))
        assert (runner.parked[1].offset, runner.parked[1].topic, runner.failure) == (None, "a", None)
        runner._fail_partition(0, ZeroDivisionError("a defect"))
        assert isinstance(runner.failure, ZeroDivisionError)
        await runner.stop()

    asyncio.run(scene())


@pytest.mark.parametrize("error", [BrokerUnavailable("no answer within 30 s"), KafkaTimeoutError()])
def test_a_broker_that_goes_away_while_rows_are_restored_ends_no_worker(tmp_path: Path, error: Exception) -> None:
    """A changelog takes minutes to read: where a broker restarts meanwhile, the stage begins anew."""

    async def scene() -> None:
        runner = _stateful(tmp_path, _Picky(ValueError()))
        runner._fail_partition(0, error)
        assert isinstance(runner.failure, BeginAnew)
        assert not runner.parked
        await runner.stop()

    asyncio.run(scene())


def test_a_new_assignment_tries_parked_partitions_anew() -> None:
    """They may be mended, or another's; who has them parks them again."""

    async def scene() -> None:
        runner = _batch(_App())
        await runner.begin({0, 1})
        runner.park(1, StateError("x"), "a", 0)
        await runner.begin({0, 1})
        assert not runner.parked
        await runner.stop()

    asyncio.run(scene())


def test_uncommitted_rows_of_one_partition_are_dropped_alone(tmp_path: Path) -> None:
    """The others' are under way."""
    state = StateRows(tmp_path)
    for partition in (0, 1):
        state.open(partition)
        state.put(partition, [RowChange(b"k", b"v")])
    state.discard(1)
    assert (state.rows(0).get(b"k"), state.rows(1).get(b"k")) == (b"v", None)
    state.close()


def test_a_call_that_ends_with_its_stage_does_not_end_the_board() -> None:
    """What is asked of the client's thread ends as if cancelled when the stage begins anew: with the board, no order
    would be heard until somebody restarts the worker."""
    looked = list[int]()

    async def look(_app: Any) -> None:
        looked.append(len(looked))
        raise asyncio.CancelledError

    async def scene() -> bool:
        board = Board(_spec(), NOWHERE)
        board.look = look  # type: ignore[method-assign]
        attending = asyncio.ensure_future(board.attend(lambda: None))
        while len(looked) < 3:
            await asyncio.sleep(0)
        attending.cancel()
        await asyncio.gather(attending, return_exceptions=True)
        return attending.cancelled()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(board_module, "LOOK_S", 0.0)
        assert asyncio.run(asyncio.wait_for(scene(), HANG_S))


# --- the fetch ---


class _Thread:
    """Stands in for the client's thread: notes from which partitions it was to fetch."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def getmany(self, active_partitions: Any, timeout: float) -> dict[Any, Any]:
        self.asked.append(active_partitions)
        return {}

    def assignment(self) -> set[Any]:
        return {ZERO, ONE}


def test_nothing_is_fetched_of_a_parked_partition(tmp_path: Path) -> None:
    """And nothing at all where all are parked: the client takes an empty set for every partition."""

    async def scene() -> list[Any]:
        connection = Connection(
            bootstrap="127.0.0.1:9", users={"admin": cast(Any, "x")}, weaviate_http_port=1, weaviate_grpc_port=1
        )
        app = build_app(_spec(), connection, data_dir=tmp_path)
        consumer: Any = app.transport.create_consumer(
            callback=_settle, on_partitions_revoked=_settle, on_partitions_assigned=_settle
        )
        consumer._thread = thread = _Thread()
        await consumer._getmany({ZERO, ONE}, 0.01)
        app.runner.parked[1] = _state()
        await consumer._getmany({ZERO, ONE}, 0.01)
        await consumer._getmany(None, 0.01)
        app.runner.parked[0] = _state()
        assert await consumer._getmany({ZERO, ONE}, 0.01) == {}
        return thread.asked

    assert asyncio.run(scene()) == [{ZERO, ONE}, {ZERO}, {ZERO}]


def test_nothing_more_is_fetched_while_much_is_in_work_but_for_what_waits_for_a_quota(tmp_path: Path) -> None:
    """Few records can be large: bytes are counted, of whatever is not done with. A tenant that waits stops nobody."""

    async def scene() -> list[Any]:
        connection = Connection(
            bootstrap="127.0.0.1:9", users={"admin": cast(Any, "x")}, weaviate_http_port=1, weaviate_grpc_port=1
        )
        app = build_app(_spec(), connection, data_dir=tmp_path)
        app.runner.spec = replace(_spec(), inputs=("a", "o"), outputs=("c", "o"), overflow="o")
        consumer: Any = app.transport.create_consumer(
            callback=_settle, on_partitions_revoked=_settle, on_partitions_assigned=_settle
        )
        consumer._thread = thread = _Thread()
        waits, much = _Message(TP("o", 0), 0), _Message(ZERO, 0)
        waits.value = much.value = b"x" * IN_WORK_BYTES_MAX
        consumer._unacked_messages |= {waits}
        await consumer._getmany({ZERO}, 0.01)
        consumer._unacked_messages |= {much}
        assert await consumer._getmany({ONE}, 0.01) == {}
        consumer.untrack(much)
        await consumer._getmany({ONE}, 0.01)
        return thread.asked

    assert asyncio.run(scene()) == [{ZERO}, {ONE}]


def test_parked_partitions_are_told_apart_from_those_that_run() -> None:
    """A stage that waits for a person is not stuck: its liveness goes by the others."""
    runner: Any = SimpleNamespace(
        spec=_spec(),
        is_ready=lambda: True,
        oldest_ms=lambda: None,
        refused_s=lambda: 0.0,
        overflow=None,
        parked={1: _state(failure="f")},
        taken=lambda tp: 0,
        lanes=SimpleNamespace(is_restoring=lambda partition: False),
    )
    consumer = SimpleNamespace(
        started=True,
        assignment=lambda: {ZERO, ONE},
        _committed_offset={ZERO: 3, ONE: 3},
        highwater=lambda tp: 9,
    )
    app = SimpleNamespace(runner=runner, consumer=consumer, topics=SimpleNamespace(acking_topics={"a"}))
    told = stage_progress(app)
    assert [row.partition for row in told.partitions] == [0]
    assert [state.failure for state in told.parked] == ["f"]
    assert told.ready
