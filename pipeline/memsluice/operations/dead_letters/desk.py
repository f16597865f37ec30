"""Where dead letters are looked at: the reviewer's desk, and besides it their topic and the way back to the intake."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextlib import closing as shutting
from dataclasses import dataclass
from pathlib import Path

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.keys import Keyring
from memsluice.errors import ConfigError
from memsluice.events.records import Output
from memsluice.operations.commands.desk import ACKNOWLEDGED_S
from memsluice.operations.dead_letters.letters import Intake, Why
from memsluice.operations.held import desk
from memsluice.operations.held.desk import HeldDesk
from memsluice.readers.base import TopicReader
from memsluice.stages.dead_letter import Letter, digest_of
from memsluice.topics.names import COMMANDS, DEAD_LETTER, EVENTS, USER_OPERATOR, USER_PRODUCER

USERS = {EVENTS: USER_PRODUCER, COMMANDS: USER_OPERATOR}
"""The intake topics, and as which of the broker's users each is written to: the only topics a replay writes."""


@dataclass(frozen=True, slots=True)
class LetterDesk:
    """``republish`` appends records to intake topics as they are, in order, and returns their offsets. ``intake`` finds
    there what a note stands for."""

    desk: HeldDesk
    letters: TopicReader
    republish: Callable[[Sequence[Output]], list[int]]
    intake: Intake


def _checked(records: Sequence[Output]) -> None:
    if foreign := {one.topic for one in records} - USERS.keys():
        raise ConfigError(f"a replay writes only to intake topics, not to {', '.join(sorted(foreign))}")


def _intake_of(reader: Callable[[str], TopicReader], keyring: Callable[[], Keyring]) -> Intake:
    """Return what finds a note's original by its place and digest. ``reader`` opens an intake topic, once each.

    What lies in a batch that *seal* did not unpack is not looked for.
    """
    readers: dict[str, TopicReader] = {}

    def find(why: Why) -> Letter | None:
        if why.topic not in USERS or why.packed:  # the reader would unpack the whole batch
            return None
        if why.topic not in readers:
            readers[why.topic] = reader(why.topic)
        record = next(iter(readers[why.topic].read(why.partition, why.offset)), None)
        if record is None or record.offset != why.offset or digest_of(record, keyring()) != why.digest:
            return None
        return record.key, record.value, record.headers

    return find


def on_kafka(home: Path | None, closing: ExitStack) -> LetterDesk:
    """Return the desk of a running stack, or of the deployment that the environment names. Raises ConfigError."""
    from memsluice.client.options import WriterOptions
    from memsluice.deployment.connection import Connection
    from memsluice.operations.dead_letters.raw import RawPublisher
    from memsluice.readers.kafka import KafkaTopic

    connection = Connection.load(home)
    letters = KafkaTopic.of(connection, topic=DEAD_LETTER)
    closing.callback(letters.close)
    options, writers = WriterOptions(delivery_seconds=ACKNOWLEDGED_S, linger_ms=1), dict[str, RawPublisher]()

    def republish(records: Sequence[Output]) -> list[int]:
        _checked(records)
        offsets: dict[int, int] = {}
        for topic in dict.fromkeys(one.topic for one in records):
            if topic not in writers:
                writers[topic] = closing.enter_context(RawPublisher(connection.confluent(USERS[topic]), options))
            numbers = [number for number, one in enumerate(records) if one.topic == topic]
            offsets |= dict(zip(numbers, writers[topic].publish([records[n] for n in numbers]), strict=True))
        return [offsets[number] for number in range(len(records))]

    def opened(topic: str) -> TopicReader:
        found = KafkaTopic.of(connection, topic=topic)
        closing.callback(found.close)
        return found

    held = desk.on_kafka(home, closing)
    return LetterDesk(held, letters, republish, _intake_of(opened, held.keys.keyring))


def embedded(home: Home, closing: ExitStack) -> LetterDesk:
    """Return the desk of a home's embedded log. Raises ConfigError where there is none."""
    from memsluice.readers.local import LocalTopic

    log = home.local_log(reading=True)
    closing.callback(log.close)

    def republish(records: Sequence[Output]) -> list[int]:
        _checked(records)
        with shutting(home.local_log()) as written:
            return [
                written.append(
                    one.topic, one.key, one.value, one.headers, append_ms=wall_ms(), partition=one.partition
                )[1]
                for one in records
            ]

    letters = LocalTopic(log, name=f"the embedded log in {home.path}", topic=DEAD_LETTER)
    held = desk.embedded(home, closing)
    intake = _intake_of(lambda topic: LocalTopic(log, topic=topic), held.keys.keyring)
    return LetterDesk(held, letters, republish, intake)
