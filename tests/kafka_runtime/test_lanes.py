"""What a lane commits together; without a broker."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from memsluice.runtimes.kafka import lanes
from memsluice.runtimes.kafka.delivery import RecordResult
from memsluice.runtimes.kafka.lanes import BACKLOG_OFFSETS_MIN, GATHERED_MAX, Lane, Lanes

from . import virtual_time

WHERE = TP("a", 0)


class _Fence:
    """Notes the places that are committed; every commit takes one turn of the loop."""

    partition = 0

    def __init__(self) -> None:
        self.places: list[int] = []

    async def open(self) -> None:
        pass

    async def transact(self, work: Any, offsets: Any) -> None:
        await work(SimpleNamespace(flush=None))
        self.places += offsets.values()

    async def close(self) -> None:
        pass


class _Owner(SimpleNamespace):
    """What a lane tells: each release, and each place that is committed."""

    def __init__(self) -> None:
        async def reach(*_: Any) -> None:
            pass

        async def place_if_idle(_: Any) -> None:
            pass

        self.told: list[int] = []
        self.end = 0
        consumer = SimpleNamespace(
            committed_at=lambda _, place: self.told.append(place),
            place_if_idle=place_if_idle,
            known_behind=lambda message: self.end - message.offset - 1,
        )
        super().__init__(
            app=SimpleNamespace(consumer=consumer),
            faults=SimpleNamespace(reach=reach),
            spec=SimpleNamespace(
                inputs=("a",), transactional=(), tuning=SimpleNamespace(transaction_records=500, in_flight=4)
            ),
            release=lambda _: None,
            dropped=lambda _: False,
        )


def _result(offset: int, *, urgent: bool) -> RecordResult:
    return RecordResult(SimpleNamespace(tp=WHERE, topic="a", partition=0, offset=offset), 0, (), urgent=urgent)


def committed(
    *urgent: bool, end: int = 0, transactional: tuple[str, ...] = (), overflow: str = "", ending: bool = False
) -> tuple[list[int], list[int]]:
    """Return the places that a lane commits for these results, one behind the other, and those that it tells.

    ``end``: up to where the log was seen to have records; ``ending``: nothing more is taken in.
    """

    async def scene() -> tuple[list[int], list[int]]:
        fence, owner = _Fence(), _Owner()
        owner.end, owner.spec.transactional, owner.spec.overflow = end, transactional, overflow
        lane = Lane(owner, fence, None, lambda _: None)  # type: ignore[arg-type]
        lane.start()
        await lane.restored.wait()
        if ending:
            lane.end()
        for offset, each in enumerate(urgent):
            lane.put(_result(offset, urgent=each))
            for _ in range(20):
                await asyncio.sleep(0)
        while lane.outstanding:
            await asyncio.sleep(0.01)
        await lane.close()
        return fence.places, owner.told

    found: tuple[list[int], list[int]] = virtual_time.run(scene())
    return found


def test_what_somebody_waits_for_is_committed_at_once() -> None:
    """A light load pays no waiting for a commit that others would share."""
    assert committed(True, True, True) == ([1, 2, 3], [1, 2, 3])


def test_what_is_known_to_come_shares_a_commit() -> None:
    """Under load a commit is shared by what the log has of a partition, and the last of it waits for nobody; markers
    behind that are nothing that comes."""
    assert committed(True, True, True, True, end=3) == ([3, 4], [3, 4])
    assert committed(True, True, end=3, transactional=("a",)) == ([2], [2])


def test_what_does_not_come_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the log was seen to have may never come: it was withdrawn, or another tenant's quota holds it back."""
    monkeypatch.setattr(lanes, "GATHER_S", 1e6)
    assert committed(True, end=9) == ([1], [1])


def test_many_that_are_known_to_come_share_a_whole_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a backlog a commit for each few records takes the broker's time from all. The first of it has waited for
    nobody, and shares as it would with a few."""
    monkeypatch.setattr(lanes, "SHARE_S", 0)
    assert committed(True, True, True, True, end=BACKLOG_OFFSETS_MIN + 3) == ([1, 4], [1, 4])
    assert committed(True, True, True, end=BACKLOG_OFFSETS_MIN) == ([1, 2, 3], [1, 2, 3])


def test_what_waits_for_its_quota_is_no_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of the overflow comes as the quota allows: a transaction of it is not waited for."""
    monkeypatch.setattr(lanes, "SHARE_S", 0)
    assert committed(True, True, True, end=99, overflow="a") == ([1, 2, 3], [1, 2, 3])


def test_at_its_end_a_stage_waits_for_nothing_that_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A revocation and a stop are bounded: what is in work is committed as it comes, whatever the log has behind it."""
    monkeypatch.setattr(lanes, "SHARE_S", 1e6)
    assert committed(True, True, end=99, ending=True) == ([1, 2], [1, 2])


def test_nobody_waits_for_a_moved_event_behind_his(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last that is known of a partition is committed with what is urgent before it."""
    monkeypatch.setattr(lanes, "GATHER_S", 1e6)
    monkeypatch.setattr(lanes, "SHARE_S", 1e6)
    assert committed(True, False, end=2) == ([2], [2])


def test_what_nobody_waits_for_shares_a_commit() -> None:
    """Events that are moved to the overflow, and their markers, take few commits of the time that all stages share."""
    assert committed(False, False, False) == ([3], [3])


def test_nobody_waits_behind_what_is_gathered() -> None:
    """An event behind moved ones of its partition takes them along at once; what comes after is gathered anew."""
    assert committed(False, False, True, False, False) == ([3, 5], [3, 5])


def test_what_is_gathered_is_bounded() -> None:
    """An event behind a flood of moved ones waits for no transaction of all of them."""
    assert committed(*[False] * (GATHERED_MAX + 1))[0] == [GATHERED_MAX, GATHERED_MAX + 1]


def test_nothing_is_gathered_while_others_wait_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be outstanding is shared by all partitions: one that gathers holds up none that has something to say."""

    async def scene() -> list[int]:
        fence, owner = _Fence(), _Owner()
        delivery = Lanes(owner, lambda _: fence, lambda _: None)  # type: ignore[arg-type, return-value]
        await delivery.begin({0})
        await delivery.ready(0)
        for offset in range(9):
            await delivery.deliver(_result(offset, urgent=False))
        await delivery.stop()
        return fence.places

    monkeypatch.setattr(lanes, "GATHER_S", 1e6)
    assert virtual_time.run(scene()) == [4, 8]
