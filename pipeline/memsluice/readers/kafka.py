"""A topic read from the broker: the audit topic by an operator, unless told otherwise."""

import contextlib
import operator
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from memsluice.deployment.connection import Connection
from memsluice.errors import BrokerUnavailable
from memsluice.events.records import Headers, Record
from memsluice.topics.names import AUDIT, BROKER_REMEDY, USER_OPERATOR

GROUP = "memsluice-{user}-inspect"
"""Named because the protocol wants one, and by its user, who may name groups of its own alone; partitions are assigned
by hand and no offset is ever committed."""
STALLED_S = 30.0
"""A read that gets nothing for so long, while the broker says that there is more, has failed."""
ASK_TIMEOUT_S = 10.0
ASK_SLICE_S = 1.0
SILENT = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
"""What a question is asked again after, until it has taken ``ASK_TIMEOUT_S``."""
POLL_TIMEOUT_S = 0.05
FETCHED_MAX = 500
"""Records taken at a time; the client's queue is bounded in bytes besides."""
QUEUED_KIB_MAX = 16_384
FETCH_WAIT_MS = 20
"""How long the broker may sit on a fetch at the end of a partition: the question for the next one queues behind it."""
FOLLOW_WAIT_MS = 500
"""... where it is only followed, and no question queues; the first record is told of at once all the same."""


class KafkaTopic:
    """A :class:`~memsluice.readers.base.TopicReader` on a broker. One consumer; use it from one thread at a time.

    Reads what is committed, and nothing of an open transaction or of one that was aborted: to it, the log ends there.

    A read that goes on where the last one ended does not assign the partition anew, and so does not wait for it.
    Between two reads the partition is paused: at its end the client would ask fifty times a second. What is followed is
    fetched all the time.
    ``asking`` reads nothing, and is asked for the ends of partitions instead: its questions queue behind no fetch.
    Whatever waits looks at ``ended`` about once a second, and ends with BrokerUnavailable where nobody waits for it.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        topic: str = AUDIT,
        name: str = "the broker",
        group: str | None = None,
        ended: Callable[[], bool] = bool,
        stalled_s: float = STALLED_S,
        monotonic: Callable[[], float] = time.monotonic,
        asking: "KafkaTopic | None" = None,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> None:
        self.name = name
        self._topic = topic
        self._ended = ended
        self._stalled_s = stalled_s
        self._monotonic = monotonic
        self._refused = ""
        self._followed: dict[int, int] = {}
        self._stands: tuple[int, int] | None = None
        self._reading: object = None
        """Stands for the read that is going on: an older one that is closed later pauses nothing."""
        self._assigned: list[TopicPartition] = []
        self._consumer = Consumer(
            {
                "log_level": 0,
                "error_cb": self._heard,
                **settings,
                "group.id": group or GROUP.format(user=settings.get("sasl.username", USER_OPERATOR)),
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "queued.max.messages.kbytes": QUEUED_KIB_MAX,
                "fetch.wait.max.ms": fetch_wait_ms,
                # Both bounds are asked at once, in two packets: the second must not wait for the first one's receipt.
                "socket.nagle.disable": True,
                "isolation.level": "read_committed",
            }
        )
        self._asking = self._consumer if asking is None else asking._consumer

    @classmethod
    def of(
        cls,
        connection: Connection,
        user: str = USER_OPERATOR,
        topic: str = AUDIT,
        group: str | None = None,
        ended: Callable[[], bool] = bool,
        asking: "KafkaTopic | None" = None,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> "KafkaTopic":
        """Return a topic of a deployment, read as ``user``, who names ``group`` where it may name no other."""
        settings, where = connection.confluent(user), f"the broker at {connection.bootstrap}"
        return cls(
            settings, topic=topic, name=where, group=group, ended=ended, asking=asking, fetch_wait_ms=fetch_wait_ms
        )

    def _heard(self, error: Any) -> None:
        if error.code() == KafkaError._AUTHENTICATION:  # otherwise it would look like a broker that is slow
            self._refused = "the broker does not accept this user or this password"

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def end(self, partition: int) -> int:
        """Return the offset that the next record will get. Raises BrokerUnavailable."""
        return self._bounds(partition)[1]

    def at(self, partition: int, since_ms: int) -> int:
        """Return the offset of the first record appended at or after a time (Unix ms). Raises BrokerUnavailable."""
        try:
            (found,) = self._consumer.offsets_for_times(
                [TopicPartition(self._topic, partition, since_ms)], timeout=ASK_TIMEOUT_S
            )
        except KafkaException as error:
            raise self._unavailable(error.args[0]) from None
        return self.end(partition) if found.offset < 0 else int(found.offset)

    def _bounds(self, partition: int) -> tuple[int, int]:
        deadline = self._monotonic() + ASK_TIMEOUT_S
        where = TopicPartition(self._topic, partition)
        while True:
            try:
                low, end = self._asking.get_watermark_offsets(where, timeout=ASK_SLICE_S)
            except KafkaException as error:
                slow = error.args[0].code() in SILENT
                if slow and self._monotonic() < deadline and not self._ended():
                    continue
                raise self._unavailable(error.args[0]) from None
            self._refused = ""  # it was let in: whatever fails next is another thing
            return low, end

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield the records from an offset to the end that the broker reports now. Raises BrokerUnavailable."""
        low, end = self._bounds(partition)
        position = max(from_offset, low)
        if position >= end:
            return
        goes_on = self._stands == (partition, position)
        self._stands = None  # until it ends well: whoever raises, or stops asking, has not taken what was fetched
        self._followed = {}
        self._reading = mine = object()
        try:
            self._consumer.resume(self._assigned)
            if goes_on:
                self._wake(partition)
            else:
                self._assign({partition: position})
            yield from self._to(end, partition, position)
        finally:
            if self._reading is mine:  # and not another's, begun since this one was left
                with contextlib.suppress(RuntimeError):  # closed
                    self._consumer.pause(self._assigned)

    def _assign(self, offsets: Mapping[int, int]) -> None:
        """Fetch these partitions from now on. None may be paused: it would stay so, and never be fetched again."""
        self._assigned = [TopicPartition(self._topic, number, offset) for number, offset in offsets.items()]
        self._consumer.assign(self._assigned)

    def _wake(self, partition: int) -> None:
        """Have the client look at once which partitions to fetch, which it does after any answer, whatever that says,
        or once a second."""
        with contextlib.suppress(KafkaException):
            self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=ASK_SLICE_S)

    def _to(self, end: int, partition: int, position: int) -> Iterator[Record]:
        deadline = self._monotonic() + self._stalled_s
        while position < end:
            try:
                messages = self._consumer.consume(min(FETCHED_MAX, end - position), timeout=POLL_TIMEOUT_S)
            except KafkaException as error:
                raise self._unavailable(error.args[0]) from None
            if self._ended():
                raise self._failed("nobody waits for it any more")
            if messages:
                deadline = self._monotonic() + self._stalled_s
            elif self._monotonic() > deadline:
                raise self._failed(
                    f"no record arrived for {self._stalled_s:g} s at offset {position} of {end}; {BROKER_REMEDY}"
                )
            for message in messages:
                problem = message.error()
                if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
                    raise self._unavailable(problem)
                if message.partition() != partition:  # left over from the partition before
                    continue
                if problem is not None:  # the end, where the last records were deleted meanwhile
                    position = max(position, message.offset())
                elif message.offset() >= position:
                    position = message.offset() + 1
                    yield _record(message)
                if position >= end:
                    self._stands = (partition, position) if message is messages[-1] else None
                    break

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what partitions hold from these offsets on, waiting at most so long for the first record.

        Asked again with the offsets after what it returned, it goes on where it stands. Raises BrokerUnavailable.
        """
        self._stands = self._reading = None
        self._consumer.resume(self._assigned)
        if self._followed != offsets:
            self._assign(offsets)
            self._followed = dict(offsets)
        try:
            first = self._consumer.poll(timeout_s)
            messages = [] if first is None else [first, *self._consumer.consume(FETCHED_MAX, timeout=0)]
        except KafkaException as error:
            raise self._unavailable(error.args[0]) from None
        records = []
        for message in messages:
            problem = message.error()
            if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
                raise self._unavailable(problem)
            if problem is None and message.offset() >= self._followed.get(message.partition(), message.offset() + 1):
                self._followed[message.partition()] = message.offset() + 1
                records.append(_record(message))
        return records

    def _unavailable(self, error: Any) -> BrokerUnavailable:
        self._consumer.poll(0)  # lets the client say what it heard
        if error.code() == KafkaError._UNKNOWN_PARTITION:  # all that a client is told of a topic not shown to it
            return self._failed(
                f"no broker told of it: there is none, this user may not read it, or no broker answers; {BROKER_REMEDY}"
            )
        return self._failed(f"{error.str()}; {BROKER_REMEDY}")

    def _failed(self, why: str) -> BrokerUnavailable:
        return BrokerUnavailable(f"{self._topic} cannot be read from {self.name}: {self._refused or why}")


_ASK_HEADERS = operator.methodcaller("headers")


def _record(message: Any) -> Record:
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        _headers(message),
        message.timestamp()[1],
    )


def _headers(message: Any) -> Headers:
    """Return a message's headers; none where a name is no UTF-8, which the client cannot return: no stage writes such
    a one, and what has no seal is told of as unverified.

    The client then returns a result *and* leaves an error set. Only a call made from C looks for that at once: the
    interpreter's fast path for methods does not, and whatever is called next fails instead.
    """
    try:
        return tuple(_ASK_HEADERS(message) or ())
    except (SystemError, UnicodeDecodeError):
        return ()
