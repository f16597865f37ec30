"""A worker that stood still while another took over: the broker refuses what it sends, and it begins anew."""

import shutil
import signal

import pytest

from memsluice.runtimes.kafka.faults import AFTER_OUTPUT, VARIABLE
from memsluice.runtimes.kafka.worker import EXIT_OK

from .harness import Lab
from .test_crashes import check_counts

pytestmark = pytest.mark.stack

SHORT = {"session_s": 6.0, "heartbeat_s": 1.0, "drain_s": 2.0, "rebalance_s": 4.0}
SLOWER = {"arguments": {"slow_from": 250}}
"""Of a worker that is to be stopped in mid-stream, however late that comes: from there on fifty records a second."""


def test_a_worker_that_stood_still_changes_nothing_when_it_goes_on(lab: Lab) -> None:
    """Paused in mid-stream, another drains; woken, the first one's queued rows and outputs are refused by the broker.

    A third worker restores from nothing and counts on: had one late row come after a newer one, a count would be wrong.
    """
    lab.prepare(2)
    total = 3000
    lab.fill(total, 2)
    stage = lab.stage("Count", "stateful", tuning=SHORT)
    first = lab.start({**stage, **SLOWER}, replica="a")
    lab.until(lambda: lab.total(lab.target) > 300, "first outputs", 0.01)
    first.signal(signal.SIGSTOP)
    assert lab.total(lab.target) < total
    second = lab.start(stage, replica="b")
    lab.until(lambda: sum(lab.committed().values()) == total, "the second one to drain")
    lab.fill(100, 2, start=total)
    lab.until(lambda: sum(lab.committed().values()) == total + 100, "what came meanwhile")
    first.signal(signal.SIGCONT)
    lab.until(lambda: lab.members() == 2, "the first one back in the group")
    first.kill()
    second.kill()
    shutil.rmtree(lab.folder / "data")
    lab.fill(100, 2, start=total + 100)
    third = lab.start(stage, replica="c")
    lab.until(lambda: sum(lab.committed().values()) == total + 200, "the third one to drain")
    assert third.stop() == EXIT_OK
    lab.holds(lab.target, total + 200)
    check_counts(lab, total + 200)


def test_a_worker_with_work_in_hand_begins_anew_when_it_was_shut_out(lab: Lab) -> None:
    """What it held is given up, its stage starts again in the same process, and it takes its share of what comes.

    Its log says so, and nothing of an exception that nobody looked at.
    """
    lab.prepare(2)
    total = 4000
    lab.fill(total, 2)
    stage = lab.stage("Count", "stateful", tuning=SHORT)
    hasty = {"tuning": {**stage["tuning"], "transaction_timeout_s": 5.0}}  # below the session of who stands still
    first = lab.start({**stage, **SLOWER, **hasty}, replica="a")
    lab.until(lambda: lab.total(lab.target) > 300, "first outputs", 0.01)
    first.signal(signal.SIGSTOP)
    second = lab.start(stage, replica="b")
    lab.until(lambda: sum(lab.committed().values()) == total, "the second one to drain")
    first.signal(signal.SIGCONT)
    lab.until(lambda: "begins anew" in first.text(), "the first one to begin anew")
    lab.until(lambda: lab.members() == 2, "both in the group")
    second.kill()
    lab.fill(100, 2, start=total)
    lab.until(lambda: sum(lab.committed().values()) == total + 100, "the first one to go on alone")
    assert first.stop() == EXIT_OK
    assert "never retrieved" not in first.text()
    check_counts(lab, total + 100)


def test_rows_outputs_and_offset_of_a_record_are_committed_together_or_not_at_all(lab: Lab) -> None:
    """Killed after every send of a transaction was confirmed and before its commit: nobody sees any of it."""
    lab.prepare(1)
    lab.fill(100)
    stage = lab.stage("Count", "stateful", tuning={"transaction_records": 10})
    worker = lab.start(stage, environment={VARIABLE: f"{AFTER_OUTPUT}:25"})
    assert worker.wait() == -signal.SIGKILL
    committed = lab.committed().get((lab.source, 0), 0)
    assert committed <= 24
    worker = lab.start(stage)
    lab.until(lambda: sum(lab.committed().values()) == 100, "everything committed")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, 100)
    lab.holds(lab.changelog, 500)


def test_an_idle_stage_is_not_behind_the_markers_of_its_input(lab: Lab) -> None:
    """A transactional input ends with a marker, which nobody is given: its offset is committed all the same."""
    lab.prepare(2)
    between = f"{lab.source}-between"
    lab.create({between: 2})
    lab.fill(60, 2)
    worker = lab.start(
        lab.stage("Count", "stateful", outputs=[between]),
        lab.stage("Stamp", "batch", inputs=[between], app_id=f"{lab.group}-second", transactional=[between]),
    )
    lab.until(lambda: lab.total(lab.target) == 60, "all outputs")
    ends = {(between, n): lab.end(between, n) for n in (0, 1)}
    assert sum(ends.values()) > 60  # the markers
    lab.until(lambda: lab.committed(f"{lab.group}-second", between) == ends, "the place behind the markers")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, 60)


def test_records_that_retention_removed_between_markers_are_noticed(lab: Lab) -> None:
    """On a transactional input, where offsets have gaps of their own, the log's start tells what was removed."""
    lab.prepare(1)
    between = f"{lab.source}-between"
    lab.create({between: 1})
    counting = lab.stage("Count", "stateful", outputs=[between], tuning={"transaction_records": 1})
    stamping = lab.stage("Stamp", "batch", inputs=[between], app_id=f"{lab.group}-second", transactional=[between])
    lab.fill(5)
    worker = lab.start(counting, stamping)
    lab.until(lambda: lab.total(lab.target) == 5, "the first outputs")
    assert worker.stop() == EXIT_OK
    lab.fill(5, start=5)
    worker = lab.start(counting)
    lab.until(lambda: lab.total(between) == 10, "what is to be lost")
    assert worker.stop() == EXIT_OK
    lab.truncate(between, 0, lab.end(between, 0) - 2)
    worker = lab.start(stamping)
    lab.until(lambda: "were not delivered" in worker.text(), "the loss to be told")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, 5)
