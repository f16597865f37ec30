"""The base wheel, alone in an empty environment, publishes to a real broker."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.patience import HANG_S

from memsluice.events import cloudevent
from memsluice.topics.names import USER_PRODUCER
from memsluice_lab.figures.installing import ISSUE, run

PUBLISH = f"""
import json, sys
from pathlib import Path
from memsluice import Connection, MemoryWriter, Session, WriterOptions
home, credential, user = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
session = Session(tenant="acme", agent="assistant", principal="ada", session="s-1")
options = WriterOptions(check_seconds={HANG_S}, delivery_seconds={HANG_S})
with MemoryWriter(Connection.load(home).confluent(user), credential, options) as memory:
    receipt = memory.write(session, "Ada prefers tea.", event_id="from-the-base").result(timeout={HANG_S})
print(json.dumps([receipt.event_id, receipt.topic, receipt.partition, receipt.offset]))
"""


@pytest.mark.stack
def test_the_base_alone_publishes_a_write_to_the_broker(stack, base: Path, tmp_path: Path) -> None:
    """What an agent platform installs is enough: keys, signature, the broker's receipt, and the record is there."""
    credential = run(base, "-I", "-c", ISSUE, tmp_path / "keys").strip()
    event_id, topic, partition, offset = json.loads(
        run(base, "-I", "-c", PUBLISH, stack.home, credential, USER_PRODUCER)
    )
    reader = Consumer({**stack.connection.confluent("admin"), "group.id": "packaging", "enable.auto.commit": False})
    try:
        reader.assign([TopicPartition(topic, partition, offset)])
        record = reader.poll(HANG_S)
        assert record is not None
        assert record.error() is None
        read = cloudevent.read(record.key(), record.value(), tuple(record.headers()))
    finally:
        reader.close()
    assert (event_id, read.id, record.offset()) == ("from-the-base", "from-the-base", offset)
    assert record.key() == b"acme"
