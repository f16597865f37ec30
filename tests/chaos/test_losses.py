"""Records of *screen*'s own input are lost: somebody answers for them, then for the events that went with them."""

from contextlib import closing

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from memsluice.envelope.partition_orders import ACKNOWLEDGE
from memsluice.envelope.registry import Role
from memsluice.events.partition import partition_of
from memsluice.keystore.store import issue_credential
from memsluice.operations.partitions.desk import PartitionDesk
from memsluice.topics import names
from memsluice_lab.chaos.following import wait
from memsluice_lab.chaos.zombies import Scene

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2_400)]

WRITES, LOST = 12, 5
WAIT_S = 600


def test_a_loss_between_the_stages_takes_two_orders_and_the_partition_goes_on(scene: Scene) -> None:
    """The first order is about the sealed records, the second about the events that were in them: both are passed, and
    what lay behind is decided."""
    bed, tenant = scene.bed, scene.work.tenants[0]
    number = partition_of(tenant, names.PARTITIONS)
    issue_credential(bed.store, Role.OPERATOR, "operator", ["*"], kid="answers-for-losses")
    scene.start("seal", "losses")
    screen = scene.start("screen", "losses")
    (session,) = scene.work.open(tenant, 1)
    assert scene.answered(scene.said())
    scene.kill(screen)  # what has a verdict is committed with it
    first = bed.ends(names.SEALED)[number]
    for _ in range(WRITES):
        scene.work.write(session)
    said = sorted(scene.said())
    assert wait(lambda: bed.ends(names.SEALED)[number] >= first + WRITES, WAIT_S)
    _remove(scene, TopicPartition(names.SEALED, number, first + LOST))
    scene.start("screen", "losses")
    with closing(PartitionDesk(bed.connection, bed.store)) as desk:
        ordered = dict[str, str]()
        assert wait(lambda: _passed_on(desk, number, ordered) and scene.answered(set(said[-1:]), 1), WAIT_S)
        assert wait(lambda: not desk.parked_now(), WAIT_S)
    assert list(dict.fromkeys(ordered.values())) == [names.SEALED, names.EVENTS]
    assert said[-1] in scene.verdicts.verdicts
    assert said[0] not in scene.verdicts.verdicts
    assert scene.ended == {}


def _remove(scene: Scene, before: TopicPartition) -> None:
    admin = AdminClient(scene.bed.connection.confluent(names.USER_ADMIN))
    for done in admin.delete_records([before]).values():
        done.result(WAIT_S)


def _passed_on(desk: PartitionDesk, number: int, ordered: dict[str, str]) -> bool:
    """Answer each stop of *screen*'s partition for what is missing, once; say whether it stopped twice by now.

    A worker that lost the partition and got it again stops anew, as another failure: whoever looks answers that, too.
    """
    for state in desk.parked_now():
        mine = (state.stage, state.partition) == ("screen", number)
        if mine and state.missing is not None and state.failure not in ordered:
            desk.order(ACKNOWLEDGE, state, f"{state.missing.topic}: a test removed them", state.missing)
            ordered[state.failure] = state.missing.topic
    return len(set(ordered.values())) == 2
