"""Workers that come, go and hang while records flow."""

import signal

import pytest
from confluent_kafka import Consumer

from memsluice.runtimes.kafka.worker import EXIT_OK

from .harness import Lab
from .test_crashes import check_counts

pytestmark = pytest.mark.stack

SHORT = {"session_s": 6.0, "heartbeat_s": 1.0, "drain_s": 2.0, "rebalance_s": 10.0}
HASTY = {"heartbeat_s": 1.0, "drain_s": 2.0}
"""Where nobody is killed: a worker that stands still for a while keeps its membership."""


def test_a_second_stateful_worker_takes_over_without_a_wrong_count(lab: Lab) -> None:
    """State follows the partitions to a worker that joins under load, and back when one is killed."""
    lab.prepare(4)
    total = 4000
    lab.fill(total // 2, 4)
    stage = lab.stage("Count", "stateful", tuning=SHORT)
    first = lab.start(stage, replica="a")
    lab.until(lambda: lab.total(lab.target) > 300, "first outputs")
    second = lab.start(stage, replica="b")
    lab.fill(total // 2, 4, start=total // 2)
    lab.until(lambda: lab.members() == 2, "both in the group")
    lab.until(lambda: lab.total(lab.target) > total * 2 // 3, "most outputs")
    first.kill()
    lab.until(lambda: sum(lab.committed().values()) == total, "everything committed")
    assert second.stop() == EXIT_OK
    check_counts(lab, total)


def test_a_hanging_batch_does_not_hold_the_rebalance(lab: Lab) -> None:
    """A worker whose sink is down gives its records up within its drain; what it finishes later is not acknowledged.

    Both workers hang on their own gate. The newcomer's opens first, so the first one's late results are of an older
    generation; they may be sent twice, but the commits are right.
    """
    lab.prepare(2)
    gates = {replica: lab.folder / f"gate-{replica}" for replica in ("a", "b")}
    for gate in gates.values():
        gate.touch()
    lab.fill(200, 2)
    workers = {}
    for replica, gate in gates.items():
        stage = lab.stage("Blocked", "batch", arguments={"gate": str(gate)}, tuning=HASTY)
        workers[replica] = lab.start(stage, replica=replica)
        lab.until(lambda replica=replica: lab.members() == len(workers), f"{replica} in the group")
    lab.until(lambda: "given up" in workers["a"].text(), "the first worker's drain to end")
    gates["b"].unlink()
    lab.until(lambda: lab.total(lab.target) == 100, "the newcomer's partition")
    assert sum(lab.committed().values()) <= 100
    gates["a"].unlink()
    lab.until(lambda: sum(lab.committed().values()) == 200, "everything committed")
    assert [worker.stop() for worker in workers.values()] == [EXIT_OK, EXIT_OK]
    assert len({record.headers[-1] for record in lab.read(lab.target)}) == 200


def test_a_blocked_stage_keeps_its_membership_and_loses_nothing(lab: Lab) -> None:
    """With the sink down for longer than the session, consumption stands still, the group does not move, and
    afterwards every record is processed exactly once."""
    lab.prepare(2)
    gate = lab.folder / "gate"
    gate.touch()
    lab.fill(3000, 2)
    tuning = {**HASTY, "session_s": 20.0}
    worker = lab.start(lab.stage("Blocked", "batch", arguments={"gate": str(gate)}, tuning=tuning))
    lab.until(lambda: lab.members() == 1, "the worker in the group")
    assert not worker.ends_within(24.0)
    assert lab.members() == 1
    assert lab.committed() == {}
    gate.unlink()
    lab.until(lambda: sum(lab.committed().values()) == 3000, "everything committed")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, 3000)
    assert "given up" not in worker.text()


def test_a_worker_waits_for_members_of_an_older_version_and_joins_by_itself(lab: Lab) -> None:
    """A stopped worker is in its group until its session is over. While one is that divides the partitions in another
    way, the broker refuses a newer worker: that one says so once, and begins when the other is gone."""
    lab.prepare(2)
    lab.fill(50, 2)
    older = Consumer(
        {
            **lab.connection.confluent(lab.user),
            "group.id": lab.group,
            "group.instance.id": f"{lab.group}-0",
            "session.timeout.ms": 20_000,
            "partition.assignment.strategy": "roundrobin",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    older.subscribe([lab.source])
    lab.until(lambda: older.poll(0.1) is not None, "the older member's partitions")
    worker = lab.start(lab.stage("Stamp", "batch", tuning=HASTY))
    lab.until(lambda: "divides its partitions in another way" in worker.text(), "the worker to say why it waits")
    older.close()
    lab.until(lambda: sum(lab.committed().values()) == 50, "everything committed")
    assert worker.stop() == EXIT_OK
    assert worker.text().count("divides its partitions in another way") == 1
    assert "fatal error" not in worker.text()


def test_sigterm_with_a_backlog_repeats_nothing(lab: Lab) -> None:
    """A graceful stop in mid-stream commits exactly what was sent."""
    lab.prepare(2)
    total = 8000
    lab.fill(total, 2)
    worker = lab.start(lab.stage("Stamp", "batch", arguments={"sleep_s": 0.5}))
    lab.until(lambda: lab.total(lab.target) > 300, "some outputs", 0.02)
    assert worker.stop() == EXIT_OK
    sent = sum(lab.committed().values())
    assert 300 < sent < total
    lab.holds(lab.target, sent)
    worker = lab.start(lab.stage("Stamp", "batch"))
    lab.until(lambda: sum(lab.committed().values()) == total, "everything committed")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, total)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_whose_stage_hangs(lab: Lab, number: signal.Signals) -> None:
    """With the sink down for ever, the worker still ends cleanly; its records are read again by the next one."""
    lab.prepare(1)
    gate = lab.folder / "gate"
    gate.touch()
    lab.fill(500)
    stage = lab.stage("Blocked", "batch", arguments={"gate": str(gate)}, tuning=HASTY)
    worker = lab.start(stage)
    lab.until(lambda: lab.members() == 1, "the worker in the group")
    worker.signal(number)
    assert worker.wait() == EXIT_OK
    assert lab.committed() == {}
    gate.unlink()
    worker = lab.start(stage)
    lab.until(lambda: lab.committed() == {(lab.source, 0): 500}, "everything committed")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, 500)
