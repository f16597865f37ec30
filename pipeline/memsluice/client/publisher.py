"""Publishing without waiting: a bounded local buffer in librdkafka, and a future a message.

No content appears in a log, in an exception or in a statistic: only event ids, topics, partitions and error names.
"""

import atexit
import logging
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException, Producer

from memsluice.client import credentials as held
from memsluice.client.build import Message, envelope_of, event_type_of, topic_of, wrap
from memsluice.client.partitioner import check_samples, fixed_settings
from memsluice.client.tracing import Sending
from memsluice.envelope.dsse import Signer
from memsluice.errors import BufferFull, ConfigError, MemsluiceError, NotDelivered, ProducerError, WriterClosed
from memsluice.events.models import AnyPayload, Command
from memsluice.events.names import EVERYBODY
from memsluice.events.partition import partition_of
from memsluice.keystore.files import SigningCredential
from memsluice.topics.names import EVENTS, PARTITIONS

POLL_SECONDS = 0.2
SIGNERS_MAX = 32
EXIT_FLUSH_SECONDS = 10.0
MESSAGE_BYTES_MAX = 1_048_576
"""librdkafka's limit on a request's message, headers included; a record's own limit is RECORD_BYTES_MAX."""
_UNKNOWN_OUTCOME = {KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_INFLIGHT, KafkaError.REQUEST_TIMED_OUT}
_log = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The broker has the event: where it lies, and when it was appended there (Unix ms)."""

    event_id: str
    topic: str
    partition: int
    offset: int
    append_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a writer publishes. Time, ids and randomness are injected here.

    ``buffer_messages`` and ``buffer_kib`` bound the local buffer; ``delivery_seconds`` how long an event may stay
    unacknowledged before its future fails; ``check_seconds`` how long start-up may ask the broker for the topic's
    partitions, None not to ask (every delivery is checked anyway). ``source`` None is made from role and key id.
    """

    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"
    structured: bool = False
    buffer_messages: int = 10_000
    buffer_kib: int = 65_536
    linger_ms: float = 2.0
    delivery_seconds: float = 30.0
    check_seconds: float | None = 10.0
    partitions: int = PARTITIONS
    source: str | None = None
    clock: Callable[[], datetime] = _now
    new_id: Callable[[], str] = field(default=lambda: str(uuid.uuid4()))
    entropy: Callable[[int], bytes] = os.urandom


class Publisher:
    """Signs payloads and publishes them; the writers and channels are thin clothes over it. Safe for several threads.

    ``settings`` are librdkafka's, at least how to connect (``Connection.confluent``). ``credentials`` are those of all
    signers: one, a command's approvers, or none where all that is published was signed before. Raises ConfigError for
    settings, credentials or a topic that would put events where the gate does not look for them, NotDelivered where no
    broker answers in time.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        credentials: held.Credentials | Sequence[held.Credentials],
        options: Options | None = None,
        *,
        topic: str = EVENTS,
    ) -> None:
        self.options = options or Options()
        one = isinstance(credentials, Sequence) and not isinstance(credentials, str)
        every: Sequence[held.Credentials] = credentials if one else (credentials,)  # type: ignore[assignment]
        self._sources = [held.source_of(credential, self._now_ms) for credential in every]
        self._topic = topic
        self._cache: dict[str, Signer] = {}
        self._closed = False
        self._gate = threading.Lock()  # between close() and the last produce()
        self._stop = threading.Event()
        check_samples(self.options.partitions)
        self._producer = open_producer(settings, self.options)
        if self.options.check_seconds is not None:
            self._check_topic(self.options.check_seconds)
        self._thread = threading.Thread(target=self._poll, name="memsluice-delivery", daemon=True)
        self._thread.start()
        atexit.register(self._at_exit)

    def publish(self, payload: AnyPayload) -> "Future[Receipt]":
        """Sign and queue an event; never waits. The future resolves when the broker has it, or fails as ProducerError.

        Raises at once: BufferFull, WriterClosed, and ExpiredKey, NotPermitted or LimitExceeded for what the gate would
        refuse.
        """
        return self._send(payload, partition_of(payload.tenant, self.options.partitions))

    def publish_to_all(self, payload: Command) -> "list[Future[Receipt]]":
        """As :meth:`publish`, once to every partition: what a command for all tenants needs."""
        return [self._send(payload, partition) for partition in range(self.options.partitions)]

    def forward(self, payload: Command, envelope: dict[str, Any]) -> "list[Future[Receipt]]":
        """As :meth:`publish`, or :meth:`publish_to_all`, for a command that its operators have signed already."""
        everybody = payload.tenant == EVERYBODY
        own = partition_of(payload.tenant, self.options.partitions)
        partitions = range(self.options.partitions) if everybody else (own,)
        return [self._send(payload, number, envelope) for number in partitions]

    def _send(self, payload: AnyPayload, partition: int, envelope: dict[str, Any] | None = None) -> "Future[Receipt]":
        sending = Sending(topic_of(payload), payload.id, event_type_of(payload), self.options.entropy)
        try:
            return self._publish(payload, sending, partition, envelope)
        except MemsluiceError as error:
            sending.failed(type(error).__name__)
            raise

    def _publish(
        self, payload: AnyPayload, sending: Sending, partition: int, envelope: dict[str, Any] | None
    ) -> "Future[Receipt]":
        message = wrap(
            payload,
            envelope or envelope_of(payload, self._signers(payload)),
            source=self.source(),
            traceparent=sending.traceparent,
            structured=self.options.structured,
        )
        receipt: Future[Receipt] = Future()
        receipt.set_running_or_notify_cancel()  # what was queued cannot be taken back
        with self._gate:
            if self._closed:
                raise WriterClosed("the writer is closed", event_id=payload.id)
            delivered = partial(self._delivered, receipt, sending, payload.id, partition)
            self._produce(topic_of(payload), message, delivered, partition if payload.tenant == EVERYBODY else None)
        return receipt

    def check(self, payload: AnyPayload) -> None:
        """Raise ExpiredKey or NotPermitted where :meth:`publish` would: before work is done that it would be for."""
        self._permitted(payload)

    def _produce(self, topic: str, message: Message, delivered: "partial[None]", partition: int | None = None) -> None:
        fixed = {} if partition is None else {"partition": partition}  # else the partitioner is what is tested
        try:
            self._producer.produce(
                topic,
                key=message.key,
                value=message.value,
                headers=list(message.headers),
                on_delivery=delivered,
                **fixed,
            )
        except BufferError:
            limits = f"{self.options.buffer_messages} events or {self.options.buffer_kib} KiB"
            raise BufferFull(f"the local buffer holds {limits} already", event_id=delivered.args[2]) from None
        except KafkaException as error:
            raise NotDelivered(_name(error.args[0]), event_id=delivered.args[2]) from None

    def source(self) -> str:
        """Return the CloudEvents source of what is published now."""
        if self.options.source is not None:
            return self.options.source
        first = self._sources[0]()
        return f"urn:memsluice:{first.role.value}:{first.kid}"

    def new_id(self) -> str:
        """Return a new event id."""
        return self.options.new_id()

    def now(self) -> datetime:
        """Return the time, with its zone."""
        return self.options.clock()

    def flush(self, timeout_s: float = 30.0) -> int:
        """Wait until every queued event is acknowledged or failed; return how many still are neither."""
        left: int = self._producer.flush(timeout_s)
        return left

    def close(self, timeout_s: float = 30.0) -> None:
        """Flush, then fail what is still unacknowledged, then stop. Closing again does nothing."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self._at_exit)
        left = self.flush(timeout_s)
        if left:
            _log.warning("the writer was closed with %d unacknowledged events", left)
            self._producer.purge(in_queue=True, in_flight=True)
            self._producer.flush(POLL_SECONDS)
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5 * POLL_SECONDS)

    def __enter__(self) -> "Publisher":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _signers(self, payload: AnyPayload) -> list[Signer]:
        return [self._signer(credential) for credential in self._permitted(payload)]

    def _permitted(self, payload: AnyPayload) -> list[SigningCredential]:
        now_ms, event_type = self._now_ms(), event_type_of(payload)
        signing = [source() for source in self._sources]
        for credential in signing:
            held.check(credential, event_type, payload, now_ms)
        return signing

    def _signer(self, credential: SigningCredential) -> Signer:
        found = self._cache.get(credential.kid)
        if found is None:
            if len(self._cache) >= SIGNERS_MAX:
                self._cache.clear()
            found = self._cache[credential.kid] = credential.signer()
        return found

    def _now_ms(self) -> int:
        return int(self.options.clock().timestamp() * 1000)

    def _check_topic(self, timeout_s: float) -> None:
        try:
            found = self._producer.list_topics(self._topic, timeout=timeout_s).topics[self._topic]
        except KafkaException as error:
            raise NotDelivered(f"no broker answered: {_name(error.args[0])}") from None
        if found.error is not None:
            raise ConfigError(f"topic {self._topic}: {_name(found.error)}; run: memsluice topics apply")
        if len(found.partitions) != self.options.partitions:
            raise ConfigError(
                f"topic {self._topic} has {len(found.partitions)} partitions, the gate expects "
                f"{self.options.partitions}: tenants would lie where it does not look for them"
            )

    def _delivered(
        self, receipt: "Future[Receipt]", sending: Sending, event_id: str, expected: int, error: Any, message: Any
    ) -> None:
        if error is not None:
            sending.failed(error.name())
            unknown = error.code() in _UNKNOWN_OUTCOME
            kind = (
                WriterClosed if error.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT) else NotDelivered
            )
            receipt.set_exception(kind(_name(error), event_id=event_id, maybe_written=unknown))
            return
        sending.acknowledged(message.partition(), message.offset())
        if message.partition() != expected:
            reason = f"event {event_id} went to partition {message.partition()}, the gate looks on {expected}"
            receipt.set_exception(ConfigError(f"{reason}: wrong partitioner, or the topic's partitions were changed"))
            return
        append_ms = message.timestamp()[1]
        receipt.set_result(Receipt(event_id, message.topic(), message.partition(), message.offset(), append_ms))

    def _poll(self) -> None:
        while not self._stop.is_set():
            try:
                self._producer.poll(POLL_SECONDS)
            except Exception as error:  # a caller's own callback on a future; deliveries must go on
                _log.error("a callback of a receipt failed: %s", type(error).__name__)

    def _at_exit(self) -> None:
        self.close(EXIT_FLUSH_SECONDS)


def _name(error: Any) -> str:
    return f"{error.name()}: {error.str()}" if isinstance(error, KafkaError) else type(error).__name__


def open_producer(settings: Mapping[str, Any], options: Options) -> Any:
    """Return librdkafka's producer under the fixed settings. Raises ConfigError."""

    def failed(error: Any) -> None:
        _log.warning("broker connection: %s", error.name())

    merged = {
        "compression.type": options.compression,
        "linger.ms": options.linger_ms,
        "queue.buffering.max.messages": options.buffer_messages,
        "queue.buffering.max.kbytes": options.buffer_kib,
        "message.timeout.ms": int(options.delivery_seconds * 1000),
        "message.max.bytes": MESSAGE_BYTES_MAX,
        "client.id": "memsluice",
        **settings,
        **fixed_settings(settings),
        "error_cb": failed,
        "logger": logging.getLogger("memsluice.client.librdkafka"),  # else it writes to stderr by itself
    }
    try:
        return Producer(merged)
    except KafkaException as error:
        raise ConfigError(f"librdkafka refuses the settings: {_name(error.args[0])}") from None


__all__ = ["Options", "ProducerError", "Publisher", "Receipt"]
