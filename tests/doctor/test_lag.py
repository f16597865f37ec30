"""How far a stage is behind is told when it matters: while a worker hangs."""

from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.patience import HANG_S

from memsluice.operations.monitor.lag import committed_of, offsets_of
from memsluice.topics import names


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_what_is_committed_is_told_while_a_worker_hangs_within_a_transaction(stack: Any) -> None:
    """A worker that hangs has an open transaction with an offset in it: the answer is what was committed before, and
    not that the broker is silent until it ends that transaction."""
    tag, settings = uuid4().hex[:6], {**stack.connection.confluent(names.USER_ADMIN), "log_level": 0}
    place, group = TopicPartition(names.EVENTS, 0), f"hangs-{tag}"
    producer = Producer({**settings, "transactional.id": f"hangs-{tag}", "transaction.timeout.ms": 900_000})
    producer.init_transactions(HANG_S)
    member = Consumer({**settings, "group.id": group, "enable.auto.commit": False})
    asked = offsets_of(settings, group)
    try:
        for offset in (3, 5):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(
                [TopicPartition(place.topic, place.partition, offset)], member.consumer_group_metadata(), HANG_S
            )
            if offset == 3:
                producer.commit_transaction(HANG_S)
        assert committed_of(asked, [place]) == {(place.topic, place.partition): 3}
        producer.abort_transaction(HANG_S)
    finally:
        member.close()
        asked.close()
