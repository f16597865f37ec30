"""One bad partition stops one partition: on the real broker, with the real orders."""

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import rocksdict
from typer.testing import CliRunner, Result

from memsluice.cli import partition
from memsluice.cli.exit_codes import ExitCode
from memsluice.envelope.partition_orders import (
    ACKNOWLEDGE,
    RESUME,
    Missing,
    PartitionOrder,
    PartitionState,
    order_key,
    order_to_bytes,
)
from memsluice.envelope.registry import Role
from memsluice.errors import InvalidArgument, NotFound, SealError
from memsluice.events.records import Record
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.doctor import remote
from memsluice.operations.partitions.desk import PartitionDesk
from memsluice.runtimes.kafka.board import publish
from memsluice.runtimes.kafka.lanes import IDLE_S
from memsluice.runtimes.kafka.state import OFFSET_KEY
from memsluice.runtimes.kafka.worker import EXIT_OK

from .harness import Lab

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("unhurried")]
NOW_MS = 1_790_000_000_000
WAIT_S = 240.0


def _keys(folder: Path) -> KeyStore:
    """Return a gate's keys, with an operator's for all tenants."""
    keys = KeyStore.init(folder, NOW_MS)
    if not keys.credential_path("op").exists():
        issue_credential(keys, Role.OPERATOR, "operator", ["*"], kid="op")
    return keys


def _told(lab: Lab) -> dict[str, Any]:
    """Create the topic of parked partitions; return a stage's options for it."""
    _keys(lab.folder / "home")
    lab.create({f"t-{lab.tag}-states": 1}, **{"cleanup.policy": "compact"})
    return {"keys": str(lab.folder / "home"), "states": f"t-{lab.tag}-states"}


def _open_desk(lab: Lab) -> PartitionDesk:
    keys = _keys(lab.folder / "home")
    return PartitionDesk(lab.connection, keys, user=lab.user, topic=f"t-{lab.tag}-states")


def _desk(lab: Lab) -> closing[PartitionDesk]:
    return closing(_open_desk(lab))


def _signed_elsewhere(lab: Lab, state: PartitionState) -> bytes:
    """Return an order to try again, as a browser brings it that the operator's key signed in."""
    order = PartitionOrder(RESUME, state.stage, state.partition, state.failure, None, "from a browser", NOW_MS)
    return order_to_bytes(_keys(lab.folder / "home").credential("op").signer(), order)


def _tried_from_elsewhere(lab: Lab, desk: PartitionDesk, stale: PartitionState, now: PartitionState) -> PartitionState:
    """Forward orders that were signed elsewhere: the one that holds has the partition tried, and it is parked again."""
    with pytest.raises(InvalidArgument, match="parked for another failure by now"):
        desk.forward(_signed_elsewhere(lab, stale))
    with pytest.raises(SealError, match="does not verify"):
        desk.forward(_signed_elsewhere(lab, now).replace(b'"sig":"', b'"sig":"AA'))
    with pytest.raises(InvalidArgument, match="at most"):
        desk.forward(b" " * 20_000)
    desk.forward(_signed_elsewhere(lab, now))
    return _parked(lab, desk, "stamp", 1, but=now.failure)


def _parked(lab: Lab, desk: PartitionDesk, stage: str, partition: int, but: str = "") -> PartitionState:
    found: list[PartitionState] = []

    def there() -> bool:
        found[:] = [
            state
            for state in desk.states()
            if state.parked and (state.stage, state.partition) == (stage, partition) and state.failure != but
        ]
        return bool(found)

    lab.until(there, f"partition {partition} told as parked")
    return found[0]


def _at(lab: Lab, partition: int, offset: int) -> Callable[[], bool]:
    return lambda: lab.committed().get((lab.source, partition)) == offset


def test_records_that_retention_removed_stop_their_partition_until_somebody_answers_for_them(lab: Lab) -> None:
    """The other partition goes on; resume tries again and parks again; forged and stale orders change nothing.

    What was removed and acknowledged is passed, the group's commit goes behind it, and who answered for it is told.
    """
    lab.prepare(2)
    options = _told(lab)
    lab.fill(20, 2)
    worker = lab.start(lab.stage("Stamp", "batch", **options))
    lab.until(lambda: sum(lab.committed().values()) == 20, "everything committed")
    assert worker.stop() == EXIT_OK
    lab.fill(40, 2, start=20)
    lab.truncate(lab.source, 1, 15)
    worker = lab.start(lab.stage("Stamp", "batch", **options))
    with _desk(lab) as desk:
        state = _parked(lab, desk, "stamp", 1)
        assert state.missing == Missing(lab.source, 10, 14)
        assert (state.error, state.offset, state.replica) == ("GapError", 15, "0")
        lab.until(_at(lab, 0, 30), "the other partition")
        lab.fill(10, 2, start=60)
        lab.until(_at(lab, 0, 35), "the other partition goes on")
        assert lab.committed()[lab.source, 1] == 10

        assert _command(lab, "resume", "stamp", "1", "--why", "try").exit_code == ExitCode.PROBLEM
        again = _parked(lab, desk, "stamp", 1, but=state.failure)
        assert again.missing == state.missing
        assert again.failure != state.failure

        again = _tried_from_elsewhere(lab, desk, state, again)
        _forged(lab, again)
        lab.until(lambda: "does not verify" in worker.text(), "the forged order refused")
        desk.order(ACKNOWLEDGE, state, "of the failure before", state.missing)
        lab.until(lambda: "answers another failure" in worker.text(), "the stale order refused")
        with pytest.raises(InvalidArgument, match="10 to 14"):
            desk.order(ACKNOWLEDGE, again, "more than that", Missing(lab.source, 10, 15))
        assert lab.committed()[lab.source, 1] == 10

        shown = _command(lab, "status")
        assert shown.exit_code == ExitCode.PROBLEM
        assert "acknowledge-gap stamp 1 --from 10 --to 14" in " ".join(shown.stdout.split())
        assert _doctored(lab) == [("fail", False)]
        words = ("acknowledge-gap", "stamp", "1", "--from", "10", "--to", "14", "--why", "retention was too short")
        assert _command(lab, *words, typed="n\n").exit_code == ExitCode.ERROR
        assert [state for state in desk.states() if state.parked] == [again]
        done = _command(lab, *words, typed="y\n")
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (ExitCode.DONE, "partition 1 of stamp runs again")
        (now,) = [state for state in desk.states() if state.partition == 1]
        assert not now.parked
        taken = [each for each in desk.accepted() if each.order.failure == again.failure]
        assert [(each.order.why, each.order.missing, each.kid) for each in taken] == [
            ("retention was too short", again.missing, "op")
        ]
        assert now.kid == "op"
        after = _command(lab, "status")
        assert after.exit_code == ExitCode.DONE
        assert "no partition is parked" in after.stdout
        assert "by op: retention was too short" in after.stdout
        assert _doctored(lab) == [("ok", True)]
        with pytest.raises(NotFound):
            desk.parked("stamp", 1)
    lab.until(_at(lab, 1, 35), "the commit behind the gap")
    lab.fill(10, 2, start=70)
    lab.until(_at(lab, 1, 40), "the partition runs on")
    assert worker.stop() == EXIT_OK
    assert len({v.value for v in lab.read(lab.target)}) == 80 - 5


def _command(lab: Lab, *words: str, typed: str = "") -> Result:
    """Run a command of ``memsluice partition`` on the lab's topic."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartitionDesk, "at", lambda _home: _open_desk(lab))
        patch.setenv("COLUMNS", "400")
        patiently = [] if words[0] == "status" else ["--wait", str(WAIT_S)]
        return CliRunner().invoke(partition.app, [*words, *patiently], input=typed)


def _doctored(lab: Lab) -> list[tuple[str, bool]]:
    """Return what the doctor says of parked partitions, and whether it tells of a loss that was acknowledged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartitionDesk, "__init__", _at_lab(lab))
        found = list(remote.partitions(lab.connection, _keys(lab.folder / "home")))
    return [(each.state.value, "retention was too short" in each.said) for each in found]


def _at_lab(lab: Lab) -> Callable[..., None]:
    """Return what opens a desk on the lab's topic instead of the deployment's."""
    honest = PartitionDesk.__init__
    return lambda self, connection, keys: honest(self, connection, keys, user=lab.user, topic=f"t-{lab.tag}-states")


def _forged(lab: Lab, state: PartitionState) -> None:
    """Send an order that another gate's key signed."""
    signer = _keys(lab.folder / "elsewhere").credential("op").signer()
    order = PartitionOrder(ACKNOWLEDGE, state.stage, state.partition, state.failure, state.missing, "trust me", NOW_MS)
    publish(lab.connection, lab.user, f"t-{lab.tag}-states", [(order_key(order), order_to_bytes(signer, order))])


def _intake(lab: Lab, numbers: range) -> None:
    lab.send(Record(lab.source, partition, 0, b"k", b"%d" % i) for i in numbers for partition in (0, 1))


def test_a_log_that_retention_emptied_before_it_was_read_is_not_passed_in_silence(lab: Lab) -> None:
    """Nothing comes behind the loss for a while: an idle stage commits no place beyond it; the next record tells."""
    lab.prepare(1)
    options = {**_told(lab), "fenced": True, "transactional": [lab.source]}
    lab.fill(10, 1)
    worker = lab.start(lab.stage("Stamp", "batch", **options))
    lab.until(_at(lab, 0, 10), "everything committed")
    assert worker.stop() == EXIT_OK
    lab.fill(10, 1, start=10)
    lab.truncate(lab.source, 0, 20)
    worker = lab.start(lab.stage("Stamp", "batch", **options))
    lab.until(lambda: lab.members() == 1, "the worker")
    time.sleep(5 * IDLE_S)
    lab.fill(1, 1, start=20)
    with _desk(lab) as desk:
        assert _parked(lab, desk, "stamp", 0).missing == Missing(lab.source, 10, 19)
    assert lab.committed()[lab.source, 0] == 10


def test_a_position_row_that_ran_back_stops_its_partition_alone(lab: Lab) -> None:
    """V3: a late row of a former owner makes every next record a gap. The others are decided, the loss is answered for.

    The order is obeyed once: the row moves on with the next record, and holds after a restart.
    """
    lab.prepare(2)
    options = _told(lab)
    _intake(lab, range(10))
    worker = lab.start(lab.stage("Follows", "stateful", **options))
    lab.until(lambda: sum(lab.committed().values()) == 20, "everything committed")
    assert worker.stop() == EXIT_OK
    shutil.rmtree(lab.folder / "data")
    lab.send([Record(lab.changelog, 1, 0, b"p", b"6")])
    _intake(lab, range(10, 20))
    worker = lab.start(lab.stage("Follows", "stateful", **options))
    with _desk(lab) as desk:
        state = _parked(lab, desk, "follows", 1)
        assert state.missing == Missing("intake", 7, 9)
        lab.until(_at(lab, 0, 20), "the other partition")
        assert lab.committed()[lab.source, 1] == 10
        again = desk.answer(desk.order(RESUME, state, ""), WAIT_S)
        assert again is not None
        assert again.parked
        now = desk.answer(desk.order(ACKNOWLEDGE, again, "they were decided before", again.missing), WAIT_S)
        assert now is not None
        assert not now.parked
    lab.until(_at(lab, 1, 20), "the partition goes on")
    assert worker.stop() == EXIT_OK
    shutil.rmtree(lab.folder / "data")
    _intake(lab, range(20, 25))
    worker = lab.start(lab.stage("Follows", "stateful", **options))
    lab.until(lambda: sum(lab.committed().values()) == 50, "both partitions after a restart")
    assert worker.stop() == EXIT_OK
    values = [record.value for record in lab.read(lab.target) if record.partition == 1]
    assert values == [b"%d" % i for i in range(25)]


def test_rows_ahead_of_their_log_stop_their_partition_and_a_restart_with_them_mended_tells_so(lab: Lab) -> None:
    """A changelog that was cut is no reason to stop the tenants of the other partitions."""
    lab.prepare(2)
    options = _told(lab)
    lab.fill(20, 2)
    worker = lab.start(lab.stage("Count", "stateful", **options))
    lab.until(lambda: sum(lab.committed().values()) == 20, "everything committed")
    assert worker.stop() == EXIT_OK
    (rows,) = (lab.folder / "data").rglob("state-1.db")
    store = rocksdict.Rdict(str(rows), options=rocksdict.Options(raw_mode=True))
    store[OFFSET_KEY] = b"1000000"
    store.close()
    lab.fill(20, 2, start=20)
    worker = lab.start(lab.stage("Count", "stateful", **options))
    with _desk(lab) as desk:
        state = _parked(lab, desk, "count", 1)
        assert (state.error, state.offset, state.missing) == ("StateError", None, None)
        lab.until(_at(lab, 0, 20), "the other partition")
        assert worker.stop() == EXIT_OK
        shutil.rmtree(rows)
        worker = lab.start(lab.stage("Count", "stateful", **options))
        lab.until(_at(lab, 1, 20), "the partition goes on")
        lab.until(lambda: not any(state.parked for state in desk.states()), "told as running")
    assert worker.stop() == EXIT_OK
