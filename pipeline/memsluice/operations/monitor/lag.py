"""How far each stage is behind its input: what is appended and not committed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from memsluice.deployment.connection import Connection
from memsluice.errors import BrokerUnavailable
from memsluice.runtimes.embedded import LocalLog
from memsluice.runtimes.embedded.runtime import INPUTS
from memsluice.topics.names import GROUPS, OVERFLOW, PARTITIONS, USER_OPERATOR

ANSWER_S = 10.0
AGAIN_S = 0.2
NOT_READY = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
Place = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True, slots=True)
class Lag:
    """``behind`` records of a stage's input wait, on ``partitions`` partitions; ``worst`` is the most on one of them.

    ``started`` is False where the stage has never committed anything. ``waits`` are the partitions that are behind,
    each with what it has committed: one that is in two of these has not moved in between.
    """

    stage: str
    behind: int
    partitions: int
    worst: int
    started: bool
    waits: frozenset[tuple[str, int, int]] = frozenset()
    over_quota: int = 0
    """Of those behind, records in the overflow: their tenants are over their quota, and they go on as that allows."""


def _lag(stage: str, waiting: Mapping[Place, int], committed: Mapping[Place, int], *, started: bool) -> Lag:
    numbers = {place: max(0, number) for place, number in waiting.items()}
    waits = frozenset((*place, committed.get(place, -1)) for place, number in numbers.items() if number)
    over_quota = sum(number for (topic, _), number in numbers.items() if topic == OVERFLOW)
    return Lag(stage, sum(numbers.values()), len(waits), max(numbers.values(), default=0), started, waits, over_quota)


def offsets_of(settings: Mapping[str, Any], group: str) -> Consumer:
    """Return what asks for a group's offsets, and never joins it.

    librdkafka's administrative client is not used for that: where a coordinator is not ready, as in the first seconds
    of a broker, it ends the whole process (its issue 5040). A worker that hangs within a transaction has an offset
    pending; whoever asks for committed records alone waits until the broker ends that transaction, and just then
    somebody asks. The answer here is what was committed before.
    """
    fixed = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
    return Consumer({**settings, **fixed})


def committed_of(group: Consumer, places: list[TopicPartition]) -> dict[Place, int]:
    """Return what a group has committed, below 0 where it has nothing. Raises KafkaException.

    A coordinator that is not ready is asked again until ANSWER_S seconds have passed.
    """
    deadline = time.monotonic() + ANSWER_S
    while True:
        try:
            answers = group.committed(places, timeout=ANSWER_S)
            if refused := next((answer.error for answer in answers if answer.error is not None), None):
                raise KafkaException(refused)
            return {(answer.topic, answer.partition): answer.offset for answer in answers}
        except KafkaException as error:
            if error.args[0].code() not in NOT_READY or time.monotonic() > deadline:
                raise
            time.sleep(AGAIN_S)


class KafkaLag:
    """Asks a broker as the operator, whose grants cover offsets and groups and nothing that would change them."""

    def __init__(self, connection: Connection, user: str = USER_OPERATOR, partitions: int = PARTITIONS) -> None:
        settings = {**connection.confluent(user), "log_level": 0, "error_cb": lambda _error: None}
        self._admin = AdminClient(settings)
        self._groups = {group: offsets_of(settings, group) for group in GROUPS.values()}
        self._partitions = partitions

    def __call__(self) -> list[Lag]:
        """Return the lag of every stage. Raises BrokerUnavailable."""
        try:
            return [self._of(stage, group) for stage, group in GROUPS.items()]
        except KafkaException as error:
            raise BrokerUnavailable(f"the broker did not return the stages' offsets: {error.args[0].str()}") from None

    def _of(self, stage: str, group: str) -> Lag:
        topics = (*INPUTS[stage], OVERFLOW) if stage == "seal" else INPUTS[stage]
        places = [TopicPartition(topic, number) for topic in topics for number in range(self._partitions)]
        committed = committed_of(self._groups[group], places)
        ends = self._offsets(places, OffsetSpec.latest())
        unknown = [place for place in places if committed.get((place.topic, place.partition), -1) < 0]
        begins = self._offsets(unknown, OffsetSpec.earliest()) if unknown else {}
        waiting = {place: end - begins.get(place, committed.get(place, 0)) for place, end in ends.items()}
        return _lag(stage, waiting, committed, started=len(unknown) < len(places))

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
            waiting = {place: self._log.end(*place) - position for place, position in done.items()}
            lags.append(_lag(stage, waiting, done, started=any(done.values())))
        return lags
