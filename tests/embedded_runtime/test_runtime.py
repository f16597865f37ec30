"""The embedded runtime moves every record exactly once, whatever the schedule and wherever it crashes."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsluice.errors import BrokerError, ConfigError, StateError
from memsluice.events.records import Output, Record
from memsluice.runtimes.embedded import Embedded, LocalLog, SeededScheduler, StepLimits
from memsluice.topics.names import ACCEPTED, AUDIT, COMMANDS, EVENTS, SEALED, STORE

from .stages import PARTITIONS, Chain, Relabel, Shelf

TOPICS = (EVENTS, COMMANDS, SEALED, ACCEPTED, AUDIT, STORE)


class Crash(BaseException):
    """The simulated death of the process: nothing in the product may catch it."""


class CrashAt:
    """Raises at the n-th point that the runtime passes."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.points: list[str] = []

    def __call__(self, point: str) -> None:
        """Count one point, and raise at the chosen one."""
        self.points.append(point)
        self.left -= 1
        if self.left == 0:
            raise Crash(point)


def start(path: Path, shelf: dict[bytes, bytes], **options: Any) -> Embedded:
    """Open the runtime as a fresh process would: new stages, the same file."""
    return Embedded(
        path,
        seal=Relabel(),
        screen=Chain(),
        land=Shelf(shelf),
        now_ms=lambda: 1_000,
        partitions=PARTITIONS,
        durable=False,
        **options,
    )


def feed(runtime: Embedded, count: int) -> None:
    """Append records of several keys to both intake topics, with repeated headers, null values and null keys."""
    for number in range(count):
        topic = COMMANDS if number % 7 == 3 else EVENTS
        value = None if number % 11 == 5 else b"value-%d" % number
        key = None if number % 13 == 6 else b"tenant-%d" % (number % 5)
        runtime.append(topic, key, value, (("a", b"1"), ("a", None), ("b", b"\xff")), append_ms=1_000 + number)


def everything(runtime: Embedded) -> tuple[dict[str, list[Record]], list[list[tuple[bytes, bytes]]]]:
    """Return every record of every topic, and every state row."""
    records = {topic: list(runtime.read(topic)) for topic in TOPICS}
    return records, [list(runtime.log.rows(p).scan(b"", 10_000)) for p in range(PARTITIONS)]


def test_a_crash_at_any_point_changes_nothing(tmp_path: Path) -> None:
    """Crash at every single point of a run and restart from the file: same records, same rows, nothing doubled."""
    limits = StepLimits(seal=4, screen=3, land=4)
    calm_shelf: dict[bytes, bytes] = {}
    watch = CrashAt(-1)
    calm = start(tmp_path / "calm.db", calm_shelf, limits=limits, hook=watch)
    feed(calm, 24)
    calm.run_until_idle()
    expected = everything(calm)
    assert len(expected[0][AUDIT]) == 24
    kinds = {"read", "processed", "outputs", "changes", "commit", "committed"}
    assert {point.split(":")[1] for point in watch.points} == kinds
    for number in range(1, len(watch.points) + 1):
        shelf: dict[bytes, bytes] = {}
        path = tmp_path / f"crash-{number}.db"
        runtime = start(path, shelf, limits=limits, hook=CrashAt(number))
        feed(runtime, 24)
        with pytest.raises(Crash):
            runtime.run_until_idle()
        runtime.close()
        runtime = start(path, shelf, limits=limits)
        runtime.run_until_idle()
        assert everything(runtime) == expected, f"crash {number} at {watch.points[number - 1]}"
        assert shelf == calm_shelf
        runtime.close()
        path.unlink()


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32), crashes=st.lists(st.integers(1, 40), max_size=6), count=st.integers(1, 40))
def test_any_schedule_with_any_crashes_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, seed: int, crashes: list[int], count: int
) -> None:
    """Random schedules and repeated crashes: one sealed record an intake offset, one audit record a sealed one."""
    path, shelf = tmp_path_factory.mktemp("log") / "log.db", {}
    runtime = start(path, shelf)
    feed(runtime, count)
    runtime.close()
    for number, crash in enumerate([*crashes, 0]):
        runtime = start(path, shelf, scheduler=SeededScheduler(seed + number), hook=CrashAt(crash))
        try:
            runtime.run_until_idle()
        except Crash:
            runtime.close()
    if crashes:
        runtime = start(path, shelf)
        runtime.run_until_idle()
    records, _ = everything(runtime)
    origins = sorted((r.value or b"").split(b":", 2)[:2] for r in records[SEALED])
    intake = [r for topic in (EVENTS, COMMANDS) for r in records[topic]]
    assert origins == sorted([r.topic.encode(), str(r.offset).encode()] for r in intake)
    assert len(records[AUDIT]) == len(records[SEALED]) == count
    assert {r.value for r in records[STORE]} == set(shelf.values()) == {r.value for r in records[ACCEPTED]}
    assert len(records[STORE]) == len(records[ACCEPTED])
    runtime.close()


def test_each_partition_keeps_the_order_of_its_topic(tmp_path: Path) -> None:
    """Whatever the schedule, a partition's sealed records follow the order in which its topic got them."""
    runtime = start(tmp_path / "log.db", {}, scheduler=SeededScheduler(3), limits=StepLimits(5, 5, 5))
    feed(runtime, 60)
    runtime.run_until_idle()
    checked = 0
    for partition in range(PARTITIONS):
        origins = [(r.value or b"").split(b":", 2) for r in runtime.read(SEALED, partition=partition)]
        for topic in (EVENTS, COMMANDS):
            offsets = [int(offset) for name, offset, _ in origins if name.decode() == topic]
            assert offsets == sorted(offsets)
            checked += len(offsets)
    assert checked == 60


def test_events_and_commands_are_taken_in_append_order(tmp_path: Path) -> None:
    """A command appended between two events is sealed between them: verdicts depend on that order."""
    runtime = start(tmp_path / "log.db", {})
    for topic, stamp in ((EVENTS, 10), (EVENTS, 30), (COMMANDS, 20)):
        runtime.append(topic, b"t", str(stamp).encode(), append_ms=stamp)
    runtime.run_until_idle()
    assert [(r.value or b"").rsplit(b":")[-1] for r in runtime.read(SEALED)] == [b"10", b"20", b"30"]


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    """Null keys and values, repeated and null headers, and append times survive the file."""
    path = tmp_path / "log.db"
    log = LocalLog(path)
    headers = (("ce_id", b"\x00\xff"), ("ce_id", None), ("x", b""))
    assert log.append(EVENTS, None, None, headers, append_ms=7) == (0, 0)
    assert log.append(EVENTS, b"k", b"v", append_ms=8, partition=5) == (5, 0)
    log.close()
    again = LocalLog(path)
    assert list(again.read(EVENTS)) == [
        Record(EVENTS, 0, 0, None, None, headers, 7),
        Record(EVENTS, 5, 0, b"k", b"v", (), 8),
    ]


def test_a_second_process_that_steps_the_file_is_stopped(tmp_path: Path) -> None:
    """Two runtimes on one file cannot both do a step: the second sees the moved position and raises StateError."""
    first, second = start(tmp_path / "log.db", {}), start(tmp_path / "log.db", {})
    feed(first, 3)
    first.run_until_idle()
    with pytest.raises(StateError, match="expected offset"):
        second.step()
    assert len(list(first.read(SEALED))) == 3


def test_a_failing_stage_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    """An exception in the middle of a screen batch rolls back the batch's outputs, rows and position together."""

    class Poisoned(Chain):
        def process(self, record: Record, rows: Any) -> Any:
            """Fail on the third record."""
            if record.offset == 2:
                raise StateError("planted")
            return super().process(record, rows)

    runtime = Embedded(
        tmp_path / "log.db", seal=Relabel(), screen=Poisoned(), land=None, now_ms=lambda: 1, partitions=1, durable=False
    )
    for number in range(4):
        runtime.append(EVENTS, b"t", b"%d" % number)
    with pytest.raises(StateError, match="planted"):
        runtime.run_until_idle()
    assert list(runtime.read(AUDIT)) == []
    assert runtime.log.rows(0).get(b"chain") is None
    assert runtime.log.position("screen", SEALED, 0) == 0


def test_retention_deletes_only_what_is_old_and_consumed(tmp_path: Path) -> None:
    """Unconsumed records outlive their time; offsets go on; the store topic keeps the newest record of a key."""
    day = 86_400_000
    log = LocalLog(tmp_path / "log.db")
    for number in range(4):
        log.append(EVENTS, b"t", b"x", append_ms=number * day, partition=0)
    assert log.prune(EVENTS, before_ms=3 * day, consumed_to=lambda _: 2) == 2
    assert [r.offset for r in log.read(EVENTS)] == [2, 3]
    assert log.append(EVENTS, b"t", b"x", append_ms=9 * day, partition=0) == (0, 4)
    with log.transaction():
        for value in (b"1", b"2", None):
            log.put(Output(STORE, 1, b"object", value), 0)
    assert log.compact(STORE) == 2
    assert [(r.offset, r.value) for r in log.read(STORE)] == [(2, None)]


def test_retaining_deletes_old_intake_and_never_what_a_stage_still_needs(tmp_path: Path) -> None:
    """With nothing to do, old and consumed intake and sealed records go, once a day; audit and what waits stay."""
    clock = [30 * 86_400_000]
    runtime = Embedded(
        tmp_path / "log.db",
        seal=Relabel(),
        screen=Chain(),
        land=Shelf({}),
        now_ms=lambda: clock[0],
        partitions=1,
        durable=False,
    )
    for number in range(6):
        runtime.append(EVENTS, b"t", b"%d" % number, append_ms=number)
    assert runtime.run_until_idle(steps_max=1) == 1  # not idle yet
    assert len(list(runtime.read(EVENTS))) == 6
    runtime.run_until_idle()
    assert list(runtime.read(EVENTS)) == list(runtime.read(SEALED)) == []
    assert len(list(runtime.read(AUDIT))) == 6
    runtime.append(EVENTS, b"t", b"late", append_ms=7)
    assert runtime.retain() == 0  # nobody has consumed it
    runtime.run_until_idle()
    assert len(list(runtime.read(AUDIT))) == 7
    assert [r.offset for r in runtime.read(EVENTS)] == [6]  # not twice a day
    clock[0] += 86_400_000
    runtime.run_until_idle()
    assert list(runtime.read(EVENTS)) == list(runtime.read(SEALED)) == []


def test_rows_scan_by_prefix_in_order_and_within_the_limit(tmp_path: Path) -> None:
    """A scan gives the rows of its prefix only, also where the prefix ends in the highest byte."""
    from memsluice.events.records import RowChange

    log = LocalLog(tmp_path / "log.db")
    rows = log.rows(1)
    with log.transaction():
        for key in (b"a\xff\xff", b"a\xff\x01", b"b", b"a\xfe", b"\xff\xff"):
            rows.apply(RowChange(key, key))
    assert [key for key, _ in rows.scan(b"a\xff", 10)] == [b"a\xff\x01", b"a\xff\xff"]
    assert [key for key, _ in rows.scan(b"\xff", 10)] == [b"\xff\xff"]
    assert [key for key, _ in rows.scan(b"", 2)] == [b"a\xfe", b"a\xff\x01"]
    assert list(log.rows(2).scan(b"", 10)) == []


def test_another_partition_count_is_refused(tmp_path: Path) -> None:
    """A file written with 3 partitions cannot be opened with 8: a tenant would change partition."""
    LocalLog(tmp_path / "log.db", partitions=3).close()
    with pytest.raises(ConfigError):
        LocalLog(tmp_path / "log.db", partitions=8)


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    """A file that is no database raises BrokerError, not a bare sqlite3 error: it names the file and the remedy."""
    (tmp_path / "log.db").write_bytes(b"no database" * 1_000)
    for reading in (False, True):
        with pytest.raises(BrokerError, match=r"log\.db is damaged.*restore.*memsluice demo --fresh"):
            LocalLog(tmp_path / "log.db", reading=reading)
    (tmp_path / "log.db").write_bytes(b"")
    with pytest.raises(BrokerError, match=r"log\.db is empty"):
        LocalLog(tmp_path / "log.db", reading=True)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of a folder's files."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    """Who only reads leaves file and folder as they were, and cannot append."""
    with closing(LocalLog(tmp_path / "log.db")) as log:
        log.append(EVENTS, b"acme", b"x", append_ms=1)
    before = contents(tmp_path)
    with closing(LocalLog(tmp_path / "log.db", reading=True)) as reader:
        assert [record.value for record in reader.read(EVENTS)] == [b"x"]
        with pytest.raises(BrokerError, match="cannot be written"):
            reader.append(EVENTS, b"acme", b"y", append_ms=2)
    assert contents(tmp_path) == before
    assert list(before) == ["log.db"]


def test_a_reader_sees_what_is_appended_meanwhile(tmp_path: Path) -> None:
    """A live view goes on while a writer works on the same home."""
    with closing(LocalLog(tmp_path / "log.db")) as log, closing(LocalLog(tmp_path / "log.db", reading=True)) as reader:
        log.append(EVENTS, b"acme", b"x", append_ms=1)
        assert [record.value for record in reader.read(EVENTS)] == [b"x"]


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Do the rest as a user without rights, where the tests run as root, whom no mode stops."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_home_that_cannot_be_written_can_be_read() -> None:
    """An auditor's copy of a home, or a snapshot mounted to read only, answers every command that only reads."""
    with tempfile.TemporaryDirectory() as name:  # not below tmp_path, which only its owner may enter
        folder = Path(name)
        with closing(LocalLog(folder / "log.db")) as log:
            log.append(EVENTS, b"acme", b"x", append_ms=1)
        (folder / "log.db").chmod(0o444)
        folder.chmod(0o555)
        with as_somebody_else(), closing(LocalLog(folder / "log.db", reading=True)) as reader:
            assert [record.value for record in reader.read(EVENTS)] == [b"x"]
        with as_somebody_else(), pytest.raises(BrokerError, match=r"cannot be written.*write permission"):
            LocalLog(folder / "log.db")
        folder.chmod(0o755)
