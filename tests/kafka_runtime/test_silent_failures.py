"""The three silent failures, each shown on the real broker: Faust as it comes, and what happens here."""

import shutil
import signal
import time

import pytest

from memsluice.events.records import Record
from memsluice.runtimes.kafka.faults import BEFORE_CHANGELOG, VARIABLE
from memsluice.runtimes.kafka.worker import EXIT_FAILED, EXIT_OK

from .harness import Lab, Worker

pytestmark = pytest.mark.stack

BACKLOG = 1000
SMALL_CHANGELOG = {"max.message.bytes": "20000"}


def _recover_with_a_backlog(lab: Lab, *, unguarded: bool) -> int:
    """Fill state, lose the local copy, start on a backlog, and let 100 records queue before the recovery's last step.

    Returns how many outputs there are in the end; the exit code is checked here.
    """
    lab.prepare(2)
    lab.fill(200, 2)
    worker = lab.start(lab.stage("Count", "stateful"))
    lab.until(lambda: lab.total(lab.target) >= 200, "first outputs")
    assert worker.stop() == EXIT_OK
    shutil.rmtree(lab.folder / "data")
    lab.fill(BACKLOG, 2, start=200)
    slow = lab.stage("Count", "stateful", tuning={"in_flight": 1, "max_poll_records": 50})
    worker = lab.start(slow, faults={"seek_until_queued": 100, "unguarded": unguarded})
    if unguarded:
        assert worker.wait() == EXIT_FAILED
        assert "GapError" in worker.text()
    else:
        lab.until(lambda: lab.total(lab.target) >= 200 + BACKLOG, "all outputs")
        assert worker.stop() == EXIT_OK
    return len({(r.partition, r.value) for r in lab.read(lab.target)})


def test_a_recovery_drops_queued_records_without_the_guard(lab: Lab) -> None:
    """A, the bug: Faust's own resume loses records at the end of a recovery; the gap detector ends the worker."""
    assert _recover_with_a_backlog(lab, unguarded=True) < 200 + BACKLOG


def test_a_recovery_keeps_queued_records_with_the_guard(lab: Lab) -> None:
    """A, the cure: the same recovery with the guarded flow delivers every record."""
    assert _recover_with_a_backlog(lab, unguarded=False) == 200 + BACKLOG


def _recover_without_a_commit(lab: Lab, faults: dict[str, bool]) -> Worker:
    """Leave a changelog but no commit behind, and start anew with a fetch that drains all partitions in recovery."""
    lab.prepare(2)
    lab.fill(200, 2)
    first = lab.stage("Count", "stateful", tuning={"commit_interval_s": 30.0})
    assert lab.start(first, environment={VARIABLE: f"{BEFORE_CHANGELOG}:150"}).wait() == -signal.SIGKILL
    assert lab.committed() == {}
    shutil.rmtree(lab.folder / "data")
    return lab.start(lab.stage("Count", "stateful"), faults={"leaky_fetch": True, **faults})


def test_records_fetched_during_a_recovery_are_lost_without_the_rewind(lab: Lab) -> None:
    """A second face of A: what is fetched in recovery is dropped, and a group that never committed is not set back.

    Nothing tells, until a record arrives after the lost ones and the gap is seen: at once if the recovery ends in the
    middle of the log, later if it fetched all of it.
    """
    worker = _recover_without_a_commit(lab, {"no_rewind": True})
    for _ in range(60):  # what arrives before a slow machine has recovered is lost like the others
        lab.fill(2, 2)
        if worker.ends_within(1.0):
            break
    assert worker.wait() == EXIT_FAILED
    assert "GapError" in worker.text()


def test_a_group_that_never_committed_starts_at_the_start_after_a_recovery(lab: Lab) -> None:
    """The cure: after recovery every partition is set to its commit, or to the log's start if it has none."""
    worker = _recover_without_a_commit(lab, {})
    lab.until(lambda: sum(lab.committed().values()) == 200, "everything committed")
    assert worker.stop() == EXIT_OK


def test_faust_commits_past_unacknowledged_records(lab: Lab) -> None:
    """B, the bug: 4 and 5 acknowledged, 0 to 3 not, and Faust commits 6."""
    lab.prepare(1)
    lab.fill(6)
    lab.start(lab.stage("Stamp", "batch"), faults={"shows": "acks"}, script="plain_faust.py")
    lab.until(lab.committed, "a commit")
    assert lab.committed() == {(lab.source, 0): 6}


def test_an_unconfirmed_record_holds_the_commit(lab: Lab) -> None:
    """B, the cure: one output unconfirmed, all later ones confirmed, and the commit stays before it."""
    lab.prepare(1)
    lab.fill(20)
    worker = lab.start(lab.stage("Stamp", "batch", tuning={"drain_s": 1.0}), faults={"unconfirmed": 3})
    lab.until(lambda: lab.total(lab.target) == 20, "all outputs")
    lab.until(lambda: lab.committed() == {(lab.source, 0): 3}, "commit up to the unconfirmed record")
    assert worker.stop() == EXIT_FAILED  # what was not confirmed is not sent again behind the next owner's back
    assert lab.committed() == {(lab.source, 0): 3}


def _fill_with_poison(lab: Lab) -> None:
    lab.prepare(1, changelog=SMALL_CHANGELOG)
    lab.send(Record(lab.source, 0, 0, b"k%d" % i, b"poison" if i == 5 else b"v%d" % i) for i in range(10))


def test_faust_commits_although_its_changelog_was_refused(lab: Lab) -> None:
    """C, the bug: the broker refuses one row, and Faust commits all ten records."""
    _fill_with_poison(lab)
    lab.start(lab.stage("Count", "stateful"), faults={"shows": "changelog"}, script="plain_faust.py")
    lab.until(lambda: lab.committed() == {(lab.source, 0): 10}, "commit of all")
    time.sleep(0.5)  # what is still on its way arrives
    assert lab.total(lab.changelog) < 10


@pytest.mark.parametrize("first", [True, False], ids=["first-batch", "later-batch"])
def test_a_refused_changelog_ends_the_worker_and_is_not_committed(lab: Lab, first: bool) -> None:
    """C, the cure: the worker ends, nothing is committed from the refused record on, and the changelog stays a prefix.

    A producer's first batch on a partition is the case idempotence does not cover: the broker takes any first number.
    """
    _fill_with_poison(lab)
    tuning = {"producer_linger_s": 0.2} if first else {}
    worker = lab.start(lab.stage("Count", "stateful", arguments={"poison_bytes": 60_000}, tuning=tuning))
    assert worker.wait() == EXIT_FAILED
    assert "stage failed" in worker.text()
    assert lab.committed().get((lab.source, 0), 0) <= 5
    rows = [(row.key, row.value) for row in lab.read(lab.changelog)]
    expected = [
        row
        for i in range(10)
        for row in (
            (b"r/%020d" % i, b"%d 1 k%d" % (i, i)),
            (b"c/k%d" % i, b"1"),
            (b"x/k%d" % i, b""),
            (b"t/k%d" % i, b"odd"),
            (b"p", b"%d" % i),
        )
    ]
    assert rows == expected[: len(rows)]
    assert len(rows) <= 27


def test_a_record_too_large_for_the_client_ends_the_worker(lab: Lab) -> None:
    """What aiokafka itself refuses to queue is a failure as well, not a warning in a log."""
    _fill_with_poison(lab)
    tuning = {"max_request_bytes": 30_000}
    worker = lab.start(lab.stage("Count", "stateful", arguments={"poison_bytes": 60_000}, tuning=tuning))
    assert worker.wait() == EXIT_FAILED
    assert lab.committed().get((lab.source, 0), 0) <= 5
