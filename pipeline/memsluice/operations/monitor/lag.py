"""How far each stage is behind its input: what is appended and not committed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from memsluice.deployment.connection import Connection
from memsluice.errors import BrokerUnavailable
from memsluice.runtimes.embedded import LocalLog
from memsluice.runtimes.embedded.runtime import INPUTS
from memsluice.topics.names import APP_LAND, APP_SCREEN, APP_SEAL, PARTITIONS, USER_OPERATOR

GROUPS = {"seal": APP_SEAL, "screen": APP_SCREEN, "land": APP_LAND}
"""Consumer group of each stage."""
ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class Lag:
    """``behind`` records of a stage's input wait, on ``partitions`` partitions; ``worst`` is the most on one of them.

    ``started`` is False where the stage has never committed anything.
    """

    stage: str
    behind: int
    partitions: int
    worst: int
    started: bool


def _lag(stage: str, waiting: Iterable[int], *, started: bool) -> Lag:
    numbers = [max(0, number) for number in waiting]
    return Lag(stage, sum(numbers), sum(number > 0 for number in numbers), max(numbers, default=0), started)


class KafkaLag:
    """Asks a broker as the operator, whose grants cover offsets and groups and nothing that would change them."""

    def __init__(self, connection: Connection, user: str = USER_OPERATOR, partitions: int = PARTITIONS) -> None:
        settings = {**connection.confluent(user), "log_level": 0, "error_cb": lambda _error: None}
        self._admin = AdminClient(settings)
        self._partitions = partitions

    def __call__(self) -> list[Lag]:
        """Return the lag of every stage. Raises BrokerUnavailable."""
        try:
            return [self._of(stage, group) for stage, group in GROUPS.items()]
        except KafkaException as error:
            raise BrokerUnavailable(f"the broker did not return the stages' offsets: {error.args[0].str()}") from None

    def _of(self, stage: str, group: str) -> Lag:
        places = [TopicPartition(topic, number) for topic in INPUTS[stage] for number in range(self._partitions)]
        asked = self._admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, places)], request_timeout=ANSWER_S
        )
        committed = {(one.topic, one.partition): one.offset for one in asked[group].result().topic_partitions}
        ends = self._offsets(places, OffsetSpec.latest())
        unknown = [place for place in places if committed.get((place.topic, place.partition), -1) < 0]
        begins = self._offsets(unknown, OffsetSpec.earliest()) if unknown else {}
        waiting = [end - begins.get(place, committed.get(place, 0)) for place, end in ends.items()]
        return _lag(stage, waiting, started=len(unknown) < len(places))

    def _offsets(self, places: list[Any], which: Any) -> dict[tuple[str, int], int]:
        answers = self._admin.list_offsets(dict.fromkeys(places, which), request_timeout=ANSWER_S)
        return {(place.topic, place.partition): answer.result().offset for place, answer in answers.items()}


class LocalLag:
    """The same of an embedded log, whose stages keep their positions in it."""

    def __init__(self, log: LocalLog) -> None:
        self._log = log

    def __call__(self) -> list[Lag]:
        """Return the lag of every stage."""
        lags = []
        for stage, topics in INPUTS.items():
            places = [(topic, number) for topic in topics for number in range(self._log.partitions)]
            done = {place: self._log.position(stage, *place) for place in places}
            waiting = [self._log.end(*place) - position for place, position in done.items()]
            lags.append(_lag(stage, waiting, started=any(done.values())))
        return lags
