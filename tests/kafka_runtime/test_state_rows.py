"""State rows over a real RocksDB: what reads see before a transaction is committed, and what is stored then."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.errors import RowsDamaged, StateError
from memsluice.events.records import Record, RowChange
from memsluice.runtimes.kafka.restore import LOCAL_MS_MAX, SKEW_MS_MAX, restore
from memsluice.runtimes.kafka.state import DAMAGED, OWN_KEYS, PendingRows, StateRows

FIRST_OFFSET = 40


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateRows]:
    """Rows of one partition in a RocksDB of their own."""
    made = StateRows(tmp_path_factory.mktemp("rows"))
    made.open(0)
    yield made
    made.close()


def write(state: StateRows, *changes: tuple[bytes, bytes | None], settled: bool = True) -> PendingRows:
    """Change rows of partition 0; the local store gets them where ``settled``."""
    made = state.put(0, [RowChange(*change) for change in changes])
    if settled:
        state.settle(made, FIRST_OFFSET + len(changes) - 1)
    return made


def clean(state: StateRows) -> None:
    """Remove every row and every change that is not committed."""
    state.discard()
    write(state, *[(key, None) for key, _ in state.rows(0).scan(b"", 1_000)])


KEYS = st.sampled_from([b"a", b"a\0", b"a\0b", b"a\0c", b"ab", b"b", b"b\0"])
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.sampled_from([b"1", b"2"])), max_size=6)


@given(stored=CHANGES, fresh=CHANGES, prefix=st.sampled_from([b"", b"a", b"a\0"]), after=st.none() | KEYS,
       limit=st.integers(0, 4))  # fmt: skip
def test_a_scan_is_that_of_a_plain_dictionary_committed_or_not(
    state: StateRows, stored: list[Any], fresh: list[Any], prefix: bytes, after: bytes | None, limit: int
) -> None:
    """Prefix, place to go on from, limit, deletions: what is not committed yet is scanned like what is."""
    clean(state)
    write(state, *stored)
    write(state, *fresh, settled=False)
    plain: dict[bytes, bytes | None] = dict([*stored, *fresh])
    there = sorted((key, value) for key, value in plain.items() if value is not None and key.startswith(prefix))
    expected = [row for row in there if after is None or row[0] > after][:limit]
    assert list(state.rows(0).scan(prefix, limit, after)) == expected
    assert all(state.rows(0).get(key) == value for key, value in plain.items())


@pytest.mark.parametrize("rows", [1, 3])
def test_a_committed_write_is_stored_with_the_offset_of_its_last_row(state: StateRows, rows: int) -> None:
    """Restoring goes on behind that offset: with another one it would repeat rows, or leave some out for good."""
    clean(state)
    write(state, *[(b"row%d" % number, b"value") for number in range(rows)])
    assert state.stands(0) == FIRST_OFFSET + rows - 1
    assert state.overlay(0) == {}
    assert [state.store(0).get(b"row%d" % number) for number in range(rows)] == [b"value"] * rows


def test_an_offset_that_the_broker_no_longer_knows_leaves_the_place_as_it_was(state: StateRows) -> None:
    """A repeated batch is confirmed without its offset: the rows are stored, and restored once more later."""
    clean(state)
    write(state, (b"row", b"1"))
    state.settle(state.put(0, [RowChange(b"row", b"2")]), -1)
    assert (state.stands(0), state.rows(0).get(b"row")) == (FIRST_OFFSET, b"2")


def test_a_later_change_of_a_row_is_seen_while_an_older_one_is_stored(state: StateRows) -> None:
    """Settling an older write takes nothing from what was changed since."""
    clean(state)
    older = write(state, (b"row", b"old"), settled=False)
    write(state, (b"row", b"new"), settled=False)
    state.settle(older, FIRST_OFFSET)
    assert state.rows(0).get(b"row") == b"new"
    assert state.store(0).get(b"row") == b"old"


def test_what_was_not_committed_is_in_no_store(state: StateRows) -> None:
    """A partition that is given up leaves its local rows a prefix of the changelog."""
    clean(state)
    write(state, (b"row", b"committed"))
    write(state, (b"row", b"sent and refused"), (b"other", b"sent and refused"), settled=False)
    state.discard()
    assert list(state.rows(0).scan(b"", 10)) == [(b"row", b"committed")]


def test_rows_of_a_partition_that_was_given_up_cannot_be_read(tmp_path: Path) -> None:
    """They may be another worker's: to decide on them would be to decide on an old copy."""
    rows = StateRows(tmp_path)
    for partition in (0, 1):
        rows.open(partition)
    rows.close(keep=frozenset({1}))
    assert rows.rows(1).get(b"row") is None
    with pytest.raises(StateError, match="partition 0"):
        rows.rows(0).get(b"row")
    rows.close()


@pytest.mark.parametrize("damaged", ["CURRENT", "MANIFEST-*", "*.sst"])
@pytest.mark.parametrize("missing", [False, True])
def test_damaged_local_rows_are_restored_anew_and_not_a_persons_work(
    tmp_path: Path, damaged: str, missing: bool
) -> None:
    """They are a copy of the changelog: a worker that ended at each start would wait for a person."""
    state = StateRows(tmp_path)
    state.open(0)
    write(state, (b"row", b"old"))
    state.close()
    for path in tmp_path.glob(f"state-0.db/{damaged}"):
        if missing:
            path.unlink()
        else:
            path.write_bytes(b"garbage\n")
    state.open(0)
    stands = state.stands(0)
    log = Log((FIRST_OFFSET, b"row", b"committed"))
    restore(state, 0, lambda _: log, Event())  # type: ignore[arg-type]
    assert (stands, state.rows(0).get(b"row")) == (None, b"committed")
    state.close()


@pytest.mark.parametrize("looked", ["get", "scan", "stands"])
def test_damage_that_shows_while_rows_are_read_has_the_stage_begin_anew(tmp_path: Path, looked: str) -> None:
    """A flipped bit opens without an error. A scan that damage ends says nothing of it by itself, and would leave out
    rows: taint, or what was revoked."""
    state = StateRows(tmp_path)
    state.open(0)
    write(state, *[(b"row%d" % number, b"value" * 50) for number in range(50)])
    state.close()
    [table] = tmp_path.glob("state-0.db/*.sst")
    data = bytearray(table.read_bytes())
    data[: len(data) // 2] = bytes(byte ^ 0xFF for byte in data[: len(data) // 2])
    table.write_bytes(data)
    state.open(0)
    look: dict[str, Any] = {
        "get": lambda: state.rows(0).get(b"row1"),
        "scan": lambda: list(state.rows(0).scan(b"row", 100)),
        "stands": lambda: state.stands(0),
    }
    with pytest.raises(RowsDamaged, match="restored from the changelog"):
        look[looked]()
    state.close()
    state.open(0)
    assert (state.stands(0), list(state.rows(0).scan(b"row", 100))) == (None, [])
    state.close()


@pytest.mark.parametrize("mark", [b"", b"IO \xc3", None], ids=["empty", "torn", "no file"])
def test_rows_that_were_marked_as_damaged_are_made_anew_whatever_the_mark_says(
    tmp_path: Path, mark: bytes | None
) -> None:
    """It is written as the disk fills, perhaps: a worker that could not read it would end at each start."""
    state = StateRows(tmp_path)
    state.open(0)
    write(state, (b"row", b"old"))
    state.close()
    path = tmp_path / "state-0.db" / DAMAGED
    if mark is None:
        path.mkdir()
    else:
        path.write_bytes(mark)
    state.open(0)
    assert (state.stands(0), state.rows(0).get(b"row")) == (None, None)
    state.close()


class Broken:
    """A real RocksDB whose writes find damage, as its compaction does, and that cannot be closed for that reason."""

    def __init__(self, store: Any, words: str) -> None:
        self._store, self._words = store, words

    def write(self, _batch: Any) -> None:
        """Fail as RocksDB does."""
        raise Exception(self._words)

    def close(self) -> None:
        """Close, and fail all the same."""
        self._store.close()
        raise Exception(self._words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("written", ["settle", "empty"])
@pytest.mark.parametrize("words", ["Corruption: block checksum mismatch", "IO error: While pread: Input/output error"])
def test_damage_that_shows_while_rows_are_written_has_the_stage_begin_anew(
    tmp_path: Path, written: str, words: str
) -> None:
    """And the stage can be stopped for it: the rows are closed, and made anew when they are opened next."""
    state = StateRows(tmp_path)
    state.open(0)
    write(state, (b"row", b"old"))
    state._stores[0] = Broken(state.store(0), words)
    change: dict[str, Any] = {"settle": lambda: write(state, (b"row", b"new")), "empty": lambda: state.empty(0)}
    with pytest.raises(RowsDamaged, match="restored from the changelog"):
        change[written]()
    state.close()
    state.open(0)
    assert (state.stands(0), list(state.rows(0).scan(b"row", 100))) == (None, [])
    state.close()


def test_local_rows_that_cannot_be_opened_for_another_reason_are_left_alone(tmp_path: Path) -> None:
    """Another process has them, or the disk is full: nothing is wrong with them."""
    first, second = StateRows(tmp_path), StateRows(tmp_path)
    first.open(0)
    write(first, (b"row", b"kept"))
    with pytest.raises(Exception, match="lock"):
        second.open(0)
    assert first.rows(0).get(b"row") == b"kept"
    first.close()


class Log:
    """A changelog whose deletions are gone: compaction forgets them after a while."""

    def __init__(self, *rows: tuple[int, bytes, bytes]) -> None:
        self.rows = rows

    def end(self, partition: int) -> int:
        """Return the next offset."""
        return self.rows[-1][0] + 1

    def read(self, partition: int, from_offset: int) -> Iterator[Record]:
        """Yield what compaction has left."""
        yield from (Record("log", 0, offset, key, value) for offset, key, value in self.rows if offset >= from_offset)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("away_ms", "left"),
    [
        (LOCAL_MS_MAX, b"deleted since"),
        (LOCAL_MS_MAX + 1, None),
        (-SKEW_MS_MAX, b"deleted since"),
        (-SKEW_MS_MAX - 1, None),
    ],
)
def test_local_rows_of_a_worker_that_was_away_for_long_are_restored_anew(
    tmp_path: Path, away_ms: int, left: bytes | None
) -> None:
    """A policy that was ended meanwhile would be in force again: its row's deletion is not in the log any more. Rows
    that were written under a clock which has been set back since may be of any age."""
    now_ms = [1_000]
    state = StateRows(tmp_path, lambda: now_ms[0])
    state.open(0)
    write(state, (b"policy", b"deleted since"), (b"kept", b"old"))
    now_ms[0] += away_ms
    log = Log((FIRST_OFFSET + 4, b"kept", b"new"), (FIRST_OFFSET + 9, b"other", b"1"))
    restore(state, 0, lambda _: log, Event())  # type: ignore[arg-type]
    assert (state.rows(0).get(b"policy"), state.rows(0).get(b"kept")) == (left, b"new")
    assert (state.stands(0), state.age_ms(0)) == (FIRST_OFFSET + 9, 0)
    state.close()


def test_rows_that_were_restored_in_part_count_as_old(tmp_path: Path) -> None:
    """A worker told to stop in the middle does not know what was deleted behind the place that it got to."""
    state, given_up = StateRows(tmp_path), Event()
    state.open(0)
    given_up.set()
    state.restore(0, [RowChange(b"kept", b"old")], FIRST_OFFSET)
    log = Log((FIRST_OFFSET + 1, b"other", b"1"))
    restore(state, 0, lambda _: log, given_up)  # type: ignore[arg-type]
    assert state.age_ms(0) is None
    state.close()


@pytest.mark.parametrize("key", [b"", b"k" * 1025, *OWN_KEYS])
def test_a_key_that_no_row_may_have_is_refused(state: StateRows, key: bytes) -> None:
    """A row under the name of the store's own place would set where restoring goes on."""
    with pytest.raises(StateError, match="key"):
        state.put(0, [RowChange(key, b"value")])
