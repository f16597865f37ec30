"""Silent failures of Faust as it comes, shown on the real broker, and what happens here.

That a recovery drops queued records can happen no more: no recovery of Faust's runs, and test_parts.py has the guard.
"""

import shutil
import signal
import time

import pytest

from memsluice.events.records import Record
from memsluice.runtimes.kafka.faults import BEFORE_CHANGELOG, VARIABLE
from memsluice.runtimes.kafka.worker import EXIT_OK

from .harness import Lab

pytestmark = pytest.mark.stack

SMALL_CHANGELOG = {"max.message.bytes": "20000"}


def test_a_group_that_never_committed_starts_at_the_start_after_a_recovery(lab: Lab) -> None:
    """Killed before its first commit, with nothing in the changelog that counts: every record is decided."""
    lab.prepare(2)
    lab.fill(200, 2)
    first = lab.stage("Count", "stateful", tuning={"transaction_records": 500})
    assert lab.start(first, environment={VARIABLE: f"{BEFORE_CHANGELOG}:1"}).wait() == -signal.SIGKILL
    assert lab.committed() == {}
    shutil.rmtree(lab.folder / "data")
    worker = lab.start(lab.stage("Count", "stateful"))
    lab.until(lambda: sum(lab.committed().values()) == 200, "everything committed")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, 200)


def test_faust_commits_past_unacknowledged_records(lab: Lab) -> None:
    """B, the bug: 4 and 5 acknowledged, 0 to 3 not, and Faust commits 6."""
    lab.prepare(1)
    lab.fill(6)
    lab.start(lab.stage("Stamp", "batch"), faults={"shows": "acks"}, script="plain_faust.py")
    lab.until(lambda: lab.committed() == {(lab.source, 0): 6}, "a commit of all")


def test_an_unconfirmed_record_holds_the_commit(lab: Lab) -> None:
    """B, the cure: one output unconfirmed, and the commit stays before it, as does what readers see."""
    lab.prepare(1)
    lab.fill(20)
    tuning = {"drain_s": 1.0, "transaction_records": 1}
    worker = lab.start(lab.stage("Stamp", "batch", tuning=tuning), faults={"unconfirmed": 3})
    lab.until(lambda: lab.committed() == {(lab.source, 0): 3}, "commit up to the unconfirmed record")
    assert worker.stop() == EXIT_OK
    assert lab.committed() == {(lab.source, 0): 3}
    lab.holds(lab.target, 3)


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


@pytest.mark.parametrize("records", [1, 500], ids=["a-record-each", "all-in-one"])
def test_a_refused_changelog_parks_its_partition_and_commits_nothing_of_its_transaction(lab: Lab, records: int) -> None:
    """C, the cure: it stops, and of the refused record's transaction there are no rows, no outputs, no offset."""
    _fill_with_poison(lab)
    tuning = {"transaction_records": records}
    worker = lab.start(lab.stage("Count", "stateful", arguments={"poison_bytes": 60_000}, tuning=tuning))
    lab.until(lambda: "OutputTooLarge" in worker.text(), "the partition to be parked")
    assert worker.stop() == EXIT_OK
    committed = lab.committed().get((lab.source, 0), 0)
    assert committed <= 5
    lab.until(lambda: lab.total(lab.changelog) >= 5 * committed, "the rows' markers")
    rows = [(row.key, row.value) for row in lab.read(lab.changelog)]
    assert rows == [
        row
        for i in range(committed)
        for row in (
            (b"r/%020d" % i, b"%d 1 k%d" % (i, i)),
            (b"c/k%d" % i, b"1"),
            (b"x/k%d" % i, b""),
            (b"t/k%d" % i, b"odd"),
            (b"p", b"%d" % i),
        )
    ]
    lab.holds(lab.target, committed)


def test_a_record_too_large_for_the_client_parks_its_partition(lab: Lab) -> None:
    """What aiokafka itself refuses to queue is a failure as well, not a warning in a log."""
    _fill_with_poison(lab)
    tuning = {"max_request_bytes": 30_000}
    worker = lab.start(lab.stage("Count", "stateful", arguments={"poison_bytes": 60_000}, tuning=tuning))
    lab.until(lambda: "OutputTooLarge" in worker.text(), "the partition to be parked")
    assert worker.stop() == EXIT_OK
    assert lab.committed().get((lab.source, 0), 0) <= 5
