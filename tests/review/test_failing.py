"""The index under failure: damaged, killed, fed twice at once, on a full disk, beside topics that were made anew."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.gate.build import PARTITION
from tests.held.test_collect import BAD, Days
from tests.patience import HANG_S
from tests.review.shelf import Shelf, ids

from memsluice.errors import BrokerUnavailable, ConfigError, StateError
from memsluice.operations.review import feeding
from memsluice.operations.review.database import Database
from memsluice.operations.review.index import FILE, ReviewIndex
from memsluice.operations.review.query import HeldQuery

ANY = HeldQuery.parse("state:any")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A desk with five held writes, of which one was rejected."""
    shelf = Shelf(tmp_path)
    for number in range(5):
        shelf.hold(f"{BAD} {number}", like=number % 2)
    shelf.days.order("reject", 0)
    return shelf


def told(index: ReviewIndex) -> list[tuple[str, str, str]]:
    """Return what an index says: id, state and group of every entry."""
    return [(row.event_id, row.state.value, row.group) for row in index.page(ANY, tenants=None).rows]


def test_the_file_is_its_owners_alone(shelf: Shelf) -> None:
    """It holds previews of contents."""
    shelf.fed().page(ANY, tenants=None)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in shelf.home.glob(f"{FILE}*")}
    assert modes == {0o600}


@pytest.mark.parametrize("damage", ["no database", "a torn page", "another form", "empty"])
def test_a_file_that_cannot_be_used_is_made_anew_from_the_topics(shelf: Shelf, damage: str) -> None:
    """Nothing in it is the only copy: whatever happened to it, the next feeding says the same as before."""
    with shelf.fed() as index:
        before = told(index)
    file = shelf.home / FILE
    if damage == "no database":
        file.write_bytes(b"this is no database at all" * 400)
    elif damage == "a torn page":
        data = bytearray(file.read_bytes())
        data[4_096:] = os.urandom(len(data) - 4_096)
        file.write_bytes(bytes(data))
    elif damage == "another form":
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE meta SET value = '0' WHERE name = 'form'")
        connection.close()
    else:
        file.write_bytes(b"")
    with shelf.fed() as index:
        assert told(index) == before


def test_damage_that_shows_while_the_index_is_open_is_said_and_mended(shelf: Shelf) -> None:
    """A page that is read from a damaged file is no empty page: it says so, and the next feeding fills it again."""
    index = shelf.fed()
    before = told(index)
    index._database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    file = shelf.home / FILE
    with file.open("r+b") as data:
        data.seek(4_096)
        data.write(b"\xff" * (file.stat().st_size - 4_096))
    index._database._connection.execute("PRAGMA cache_size = 0")
    index._database._connection.execute("PRAGMA shrink_memory")
    with pytest.raises(StateError, match="made anew"):
        index.page(ANY, tenants=None)
    index.feed(shelf)
    assert told(index) == before


def test_topics_that_were_made_anew_are_noticed(shelf: Shelf) -> None:
    """Entries of another topic are not shown beside, or as, those of this one; shorter, equally long or longer."""
    for count in (3, 5, 8):
        with shelf.fed():
            pass
        shelf.days = Days()
        for number in range(count):
            shelf.hold(f"{BAD} another {count} {number}", id=f"n{number}")
        with shelf.index() as index:
            assert PARTITION in index.feed(shelf).begun_anew
            assert ids(index.page(ANY, tenants=None)) == [f"n{number}" for number in reversed(range(count))]


def test_records_that_the_topic_keeps_no_longer_are_no_topic_made_anew(shelf: Shelf) -> None:
    """Retention takes the oldest records away: what is known stays, and reading goes on."""
    index = shelf.fed()
    gone = shelf.held.records[:]
    shelf.hold(f"{BAD} later", id="later", like=5)
    shelf.held.records = [None] * len(gone) + shelf.held.records[len(gone) :]
    shelf.held.read = (
        lambda partition, start=0: (  # type: ignore[method-assign]
            one for one in shelf.held.records[start:] if one is not None and one.partition == partition
        )
    )
    fed = index.feed(shelf)
    assert (fed.begun_anew, fed.entries) == ((), 1)
    assert len(told(index)) == 6


class Away:
    """A topic whose broker does not answer."""

    name = "the broker"

    def end(self, partition: int) -> int:
        """Raise BrokerUnavailable."""
        raise BrokerUnavailable("memory.audit.v1 cannot be read from the broker")


def test_what_is_known_is_served_while_the_broker_is_away(shelf: Shelf) -> None:
    """The index says as of when; a feeding that fails changes neither that nor what is known."""
    index = shelf.fed()
    before, at = told(index), index.fed_ms
    assert at == shelf.now_ms

    class Half:
        held, audit, keys = shelf.held, Away(), shelf.keys

    shelf.now_ms += 60_000
    with pytest.raises(BrokerUnavailable):
        index.feed(Half())
    assert (told(index), index.fed_ms, index.page(ANY, tenants=None).fed_ms) == (before, at, at)
    index.feed(shelf)
    assert index.fed_ms == at + 60_000


def test_two_that_feed_at_once_take_in_everything_once(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch counts for one of them; groups and states are those of a single feeding."""
    monkeypatch.setattr(feeding, "BATCH", 2)
    monkeypatch.setattr("memsluice.operations.review.database.BUSY_S_MAX", HANG_S)
    for number in range(20):
        shelf.hold(f"{BAD} more {number}", like=number % 3)
        shelf.days.order("reject", 5 + number)
    with shelf.index() as alone:
        alone.feed(shelf)
        wanted = told(alone)
    (together := shelf.home / "together").mkdir()
    counts, failed = [], []

    def feed() -> None:
        try:
            with ReviewIndex.open(together, clock=lambda: shelf.now_ms) as index:
                counts.append(index.feed(shelf))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=feed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (sum(one.entries for one in counts), sum(one.rulings for one in counts)) == (25, 21)
    with ReviewIndex.open(together, clock=lambda: shelf.now_ms) as index:
        assert told(index) == wanted


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.held.test_collect import BAD
from tests.review.shelf import Shelf
from memsluice.operations.review import feeding
shelf = Shelf(Path(sys.argv[1]))
for number in range(5):
    shelf.hold(f"{BAD} {number}", like=number % 2)
shelf.days.order("reject", 0)
feeding.BATCH = 2
put, left = feeding.Feeder._put, [int(sys.argv[2])]
def counted(*arguments, **named):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= bool(arguments[4])  # a batch with records
    return put(*arguments, **named)
feeding.Feeder._put = counted
shelf.fed()
"""


def test_a_feeding_that_is_killed_goes_on_where_its_last_batch_ended(shelf: Shelf) -> None:
    """kill -9 loses nothing and doubles nothing: rows and the place that was read become durable together."""
    top = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(top), *sys.path])}
    done = subprocess.run([sys.executable, "-c", KILLED, str(shelf.home), "3"], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    (beside := shelf.home / "beside").mkdir()
    with ReviewIndex.open(beside, clock=lambda: shelf.now_ms) as whole:
        whole.feed(shelf)
        wanted = [(event_id, state) for event_id, state, _ in told(whole)]
    with shelf.index() as index:
        half = told(index)
        assert 0 < len(half) < len(wanted)
        index.feed(shelf)
        assert [(event_id, state) for event_id, state, _ in told(index)] == wanted


def test_a_full_disk_is_said_and_what_is_known_is_served(shelf: Shelf) -> None:
    """A batch that does not fit is not taken in half; what was known can be read, and feeding goes on with room."""
    index = shelf.fed()
    before = told(index)
    execute = index._database._connection.execute
    ((pages,),) = execute("PRAGMA page_count").fetchall()
    execute(f"PRAGMA max_page_count = {pages}")
    for number in range(60):
        shelf.hold(f"{BAD} {'x' * 280} {number}", like=number % 9)
    with pytest.raises(ConfigError, match=r"cannot grow .*: free some space"):
        index.feed(shelf)
    assert told(index) == before
    execute("PRAGMA max_page_count = 100000")
    assert index.feed(shelf).entries == 60


def test_a_home_that_cannot_be_written_is_read_all_the_same(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is then this process's own, and leaves nothing behind."""
    monkeypatch.setattr(
        "memsluice.operations.review.database.private_file", lambda path: (_ for _ in ()).throw(PermissionError(path))
    )
    assert len(told(shelf.fed())) == 5
    assert not (shelf.home / FILE).exists()


def test_a_file_that_is_held_by_another_process_is_said(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for long is told which file, and what to do."""
    monkeypatch.setattr("memsluice.operations.review.database.BUSY_S_MAX", 0.01)
    index = shelf.fed()
    other = sqlite3.connect(shelf.home / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    shelf.hold(f"{BAD} later", like=5)
    with pytest.raises(ConfigError, match="in use by another process"):
        index.feed(shelf)
    other.execute("ROLLBACK")
    other.close()
    assert index.feed(shelf).entries == 1


def test_a_query_on_a_file_of_sqlite_that_is_no_index_is_answered() -> None:
    """A temporary index is as good as a file."""
    database = Database(Path("/proc/nowhere/desk.sqlite3"))
    assert database.path is None
    assert database.rows("SELECT count(*) FROM entries") == [(0,)]
    database.close()


def test_what_a_clock_that_was_ahead_let_go_is_read_again(shelf: Shelf) -> None:
    """Rows of what lapsed long ago go; where only this machine's clock said so, they are back once it is right."""
    with shelf.fed() as index:
        before = told(index)
    right, shelf.now_ms = shelf.now_ms, shelf.now_ms + 90 * 86_400_000
    with shelf.fed() as index:
        assert told(index) == []
    shelf.now_ms = right
    with shelf.fed() as index:
        assert told(index) == before
