"""Death at the worst moments, on the real broker: nothing lost, nothing contradicted, nothing committed too far."""

import shutil
import signal

import pytest

from memsluice.events.records import Record
from memsluice.runtimes.kafka.faults import AFTER_CHANGELOG, AFTER_COMMIT, AFTER_OUTPUT, BEFORE_CHANGELOG, VARIABLE
from memsluice.runtimes.kafka.worker import EXIT_FAILED, EXIT_OK

from .harness import Lab

pytestmark = pytest.mark.stack

COUNT = 400


def check_counts(lab: Lab, count: int, keys: int = 7) -> None:
    """Every record has an output, all outputs of a record are the same bytes, each key counts 1, 2, 3 …, and the
    changelog ends in the same counts."""
    lab.until(lambda: lab.total(lab.target) >= count, "all outputs")  # a commit is told before its markers stand
    lab.until(lambda: lab.total(lab.changelog) >= 5 * count, "all rows")
    lines: dict[tuple[int, int], set[bytes]] = {}
    for record in lab.read(lab.target):
        offset = int((record.value or b"").split(b" ")[0])
        lines.setdefault((record.partition, offset), set()).add(record.value or b"")
    assert len(lines) == count
    assert all(len(each) == 1 for each in lines.values())
    counts: dict[tuple[int, bytes], list[int]] = {}
    for (partition, _), (line,) in sorted(lines.items()):
        _, number, key = line.split(b" ")
        counts.setdefault((partition, key), []).append(int(number))
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in counts.values())
    state = {(row.partition, row.key): row.value for row in lab.read(lab.changelog)}
    assert {where: int(state[where[0], b"c/" + where[1]] or b"0") for where in counts} == {
        where: len(numbers) for where, numbers in counts.items()
    }
    assert len({key for _, key in counts}) == keys


@pytest.mark.parametrize("wiped", [False, True], ids=["same-disk", "empty-disk"])
@pytest.mark.parametrize("point", [BEFORE_CHANGELOG, AFTER_CHANGELOG, AFTER_OUTPUT, AFTER_COMMIT])
def test_kill_9_at_a_planted_point_loses_and_contradicts_nothing(lab: Lab, point: str, wiped: bool) -> None:
    """Killed before the changelog, between changelog and output, between output and commit, and between the commit and
    the local rows; restarted on the same disk and on an empty one. No output is seen that was not committed."""
    lab.prepare(2)
    lab.fill(COUNT, 2)
    stage = lab.stage("Count", "stateful", tuning={"transaction_records": 50})
    passes = 3 if point == AFTER_COMMIT else 150
    worker = lab.start(stage, environment={VARIABLE: f"{point}:{passes}"})
    assert worker.wait() == -signal.SIGKILL
    assert lab.total(lab.target) <= sum(lab.committed().values())
    if wiped:
        shutil.rmtree(lab.folder / "data")
    worker = lab.start(lab.stage("Count", "stateful"))
    lab.until(lambda: sum(lab.committed().values()) == COUNT, "everything committed")
    assert worker.stop() == EXIT_OK
    check_counts(lab, COUNT)


def test_repeated_kill_9_under_load(lab: Lab) -> None:
    """Three deaths at arbitrary moments of a run, each with records in flight."""
    lab.prepare(2)
    total = 6000
    lab.fill(total, 2)
    stage = lab.stage("Count", "stateful", tuning={"transaction_records": 20})
    for target in (300, 1500, 3000):
        worker = lab.start({**stage, "arguments": {"slow_from": target * 2 // 3}})  # of each of the two partitions
        lab.until(lambda target=target: lab.total(lab.target) >= target, "some outputs", 0.02)
        worker.kill()
        assert sum(lab.committed().values()) < total
    worker = lab.start(stage)
    lab.until(lambda: sum(lab.committed().values()) == total, "everything committed")
    assert worker.stop() == EXIT_OK
    check_counts(lab, total)


def test_a_stage_that_raises_ends_the_worker_uncommitted(lab: Lab) -> None:
    """The process ends with an error code and the commit stays before the batch that failed."""
    lab.prepare(1)
    lab.send(Record(lab.source, 0, 0, b"k", b"poison" if i == 100 else b"v") for i in range(120))
    worker = lab.start(lab.stage("Broken", "batch", tuning={"batch_size": 10}))
    assert worker.wait() == EXIT_FAILED
    assert "ValueError at " in worker.text()
    assert "does not know what to do" not in worker.text()  # another's words may quote a record
    assert 0 <= lab.committed().get((lab.source, 0), 0) <= 100
    assert lab.total(lab.target) <= 100


def test_an_output_to_an_undeclared_topic_ends_the_worker(lab: Lab) -> None:
    """A stage sends where its spec says, and nowhere else."""
    lab.prepare(1)
    lab.fill(3)
    worker = lab.start(lab.stage("Astray", "batch"))
    assert worker.wait() == EXIT_FAILED
    assert "may not send to" in worker.text()
    assert lab.committed() == {}


def test_records_that_retention_removed_are_noticed(lab: Lab) -> None:
    """Records between the commit and the log's start were lost before they were read: their partition is parked."""
    lab.prepare(1)
    lab.fill(10)
    worker = lab.start(lab.stage("Stamp", "batch"))
    lab.until(lambda: lab.committed() == {(lab.source, 0): 10}, "first commit")
    assert worker.stop() == EXIT_OK
    lab.fill(20)
    lab.truncate(lab.source, 0, 15)
    worker = lab.start(lab.stage("Stamp", "batch"))
    lab.until(lambda: "records 10 to 14" in worker.text(), "the loss to be told")
    assert worker.stop() == EXIT_OK
    assert lab.committed() == {(lab.source, 0): 10}
