"""Where dead letters are looked at: the reviewer's desk, and besides it their topic and the way back to the intake."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextlib import closing as shutting
from dataclasses import dataclass
from pathlib import Path

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.errors import ConfigError
from memsluice.events.records import Output
from memsluice.operations.commands.desk import ACKNOWLEDGED_S
from memsluice.operations.held import desk
from memsluice.operations.held.desk import HeldDesk
from memsluice.readers.base import TopicReader
from memsluice.topics.names import COMMANDS, DEAD_LETTER, EVENTS, USER_OPERATOR, USER_PRODUCER

USERS = {EVENTS: USER_PRODUCER, COMMANDS: USER_OPERATOR}
"""The intake topics, and as which of the broker's users each is written to: the only topics a replay writes."""


@dataclass(frozen=True, slots=True)
class LetterDesk:
    """``republish`` appends records to intake topics as they are, in order, and returns their offsets."""

    desk: HeldDesk
    letters: TopicReader
    republish: Callable[[Sequence[Output]], list[int]]


def _checked(records: Sequence[Output]) -> None:
    if foreign := {one.topic for one in records} - USERS.keys():
        raise ConfigError(f"a replay writes only to intake topics, not to {', '.join(sorted(foreign))}")


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

    return LetterDesk(desk.on_kafka(home, closing), letters, republish)


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
    return LetterDesk(desk.embedded(home, closing), letters, republish)
