"""The overflow on the real broker: keys over their quota wait, in order, whatever becomes of the workers."""

import signal

import pytest

from memsluice.events.records import Record
from memsluice.runtimes.kafka.faults import AFTER_COMMIT, AFTER_OUTPUT, VARIABLE
from memsluice.runtimes.kafka.worker import EXIT_OK

pytestmark = pytest.mark.stack
NOISY = 60
AT_ONCE = {"linger.ms": 60_000}
"""Published in one batch a partition, with one time of the broker's: quotas go by it."""


def quotas(lab, per_s: int = 40, burst: int = 5):
    """Return a stage whose keys have quotas, and make its overflow."""
    overflow = f"{lab.source}-overflow"
    return lab.stage(
        "Quotas",
        "batch",
        inputs=[lab.source, overflow],
        outputs=[lab.target, overflow],
        arguments={"overflow": overflow, "per_s": per_s, "burst": burst},
        overflow=overflow,
        transactional=[overflow],
        tuning={"transaction_records": 7, "batch_size": 10},
    )


def prepared(lab, per_s: int = 40):
    """Return the stage, with its topics made and a noisy key's and two quiet ones' records published."""
    lab.prepare(2)
    stage = quotas(lab, per_s)
    lab.create({f"{lab.source}-overflow": 2})
    lab.send((Record(lab.source, n % 2, 0, b"noisy-%d" % (n % 2), b"%d" % n) for n in range(NOISY)), **AT_ONCE)
    lab.send(Record(lab.source, n % 2, 0, b"quiet", b"%d" % n) for n in range(4))
    lab.send(Record(lab.source, n % 2, 0, b"free", b"%d" % n) for n in range(20))
    return stage


def outcome(lab) -> tuple[dict[tuple[bytes | None, int], list[int]], int]:
    """Return what left of each key and partition, in order, and how many markers there are."""
    left, markers = dict[tuple[bytes | None, int], list[int]](), 0
    for record in lab.read(lab.target):
        if record.key == b"marker":
            markers += 1
        else:
            left.setdefault((record.key, record.partition), []).append(int(record.value or b""))
    return left, markers


def check(lab) -> int:
    """Assert that everything left once, each key's in its order; return how much of it waited."""
    left, markers = outcome(lab)
    for number in (0, 1):
        assert left[b"noisy-%d" % number, number] == list(range(number, NOISY, 2))
        assert left[b"quiet", number] == list(range(number, 4, 2))
        assert left[b"free", number] == list(range(number, 20, 2))
    lab.holds(f"{lab.source}-overflow", markers)
    return markers


def through(lab) -> bool:
    """Whether every record has left."""
    return sum(len(numbers) for numbers in outcome(lab)[0].values()) >= NOISY + 24


def test_who_is_over_the_quota_waits_and_nobody_else(lab) -> None:
    """Of the noisy keys all beyond the burst is moved, of quiet ones and of one without a limit nothing."""
    stage = prepared(lab, per_s=8)  # what waits takes seconds to leave: the intake is read before, however slowly
    worker = lab.start(stage)
    lab.until(lambda: through(lab), "everything to leave")
    assert "over its quota" in worker.text()
    assert worker.stop() == EXIT_OK
    assert check(lab) == NOISY - 10


@pytest.mark.parametrize(
    "point", [f"{AFTER_OUTPUT}:1", f"{AFTER_OUTPUT}:25", f"{AFTER_OUTPUT}:70", f"{AFTER_COMMIT}:5"]
)
def test_a_kill_between_moving_and_committing_loses_doubles_and_reorders_nothing(lab, point: str) -> None:
    """What was moved and not committed was never moved; who waits is read from the overflow by the next worker."""
    stage = prepared(lab)
    assert lab.start(stage, environment={VARIABLE: point}).wait() == -signal.SIGKILL
    worker = lab.start(stage)
    lab.until(lambda: through(lab), "everything to leave")
    assert worker.stop() == EXIT_OK
    check(lab)


def test_a_paused_worker_that_wakes_after_a_takeover_moves_and_seals_nothing_more(lab) -> None:
    """While another goes on with what waits, the broker refuses it, or it is back in the group before it sends any."""
    stage = prepared(lab)
    stage["tuning"] |= {"session_s": 10.0, "heartbeat_s": 1.0, "rebalance_s": 10.0}
    slowly = {**stage, "arguments": {**stage["arguments"], "per_s": 1}}
    first = lab.start(slowly)
    lab.until(lambda: lab.total(f"{lab.source}-overflow") > 20, "some to wait")
    first.signal(signal.SIGSTOP)
    assert not through(lab), "the first one holds nothing that waits"
    second = lab.start(stage, replica="1")
    lab.until(lambda: through(lab), "the second one to finish")
    first.signal(signal.SIGCONT)
    lab.until(lambda: lab.members() == 2, "both in the group")
    first.kill()
    second.kill()
    check(lab)


def test_a_worker_that_is_stopped_while_much_waits_ends_in_time_and_the_next_goes_on(lab) -> None:
    """What is held back is no work in hand: nothing waits for it, and it is read again."""
    lab.prepare(1)
    stage = quotas(lab, per_s=1, burst=1)
    lab.create({f"{lab.source}-overflow": 1})
    lab.send((Record(lab.source, 0, 0, b"k0", b"v%d" % n) for n in range(30)), **AT_ONCE)
    worker = lab.start(stage)
    lab.until(lambda: lab.total(f"{lab.source}-overflow") == 29, "all but one to wait")
    assert worker.stop() == EXIT_OK
    lab.fill(1, keys=1, start=30)
    worker = lab.start({**stage, "arguments": {**stage["arguments"], "per_s": 1_000}})
    lab.until(lambda: lab.total(lab.target) >= 60, "all")
    assert worker.stop() == EXIT_OK
    left = [record.value for record in lab.read(lab.target) if record.key != b"marker"]
    assert left == [b"v%d" % number for number in range(31)]


def test_a_record_that_was_not_moved_there_parks_its_partition_alone(lab) -> None:
    """Somebody with the stage's own rights wrote to the overflow: it is told, and the others run on."""
    lab.prepare(2)
    stage = quotas(lab)
    overflow = f"{lab.source}-overflow"
    lab.create({overflow: 2})
    worker = lab.start(stage)
    lab.until(lambda: lab.members() == 1, "the worker")
    lab.send([Record(overflow, 0, 0, b"k", b"v", (("moved/not", b"x/1"),))])
    lab.until(lambda: "parked" in worker.text(), "the partition to be parked")
    lab.send([Record(lab.source, 1, 0, b"k", b"1")])
    lab.until(lambda: lab.total(lab.target) == 1, "the other partition to go on")
    assert worker.stop() == EXIT_OK
