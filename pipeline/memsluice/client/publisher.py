"""Publishing without waiting: a bounded local buffer in librdkafka, and a future a message.

No content appears in a log, in an exception or in a statistic: only event ids, topics, partitions and error names.
"""

import atexit
import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException, Producer

from memsluice.client import arguments
from memsluice.client import credentials as held
from memsluice.client.build import Message, envelope_of, event_type_of, topic_of, wrap
from memsluice.client.connectivity import Connectivity, LibrdkafkaLog, connectivity_of
from memsluice.client.options import WriterOptions, options_of
from memsluice.client.partitioner import check_samples, fixed_settings
from memsluice.client.tracing import Sending
from memsluice.envelope.dsse import Signer
from memsluice.envelope.registry import Role
from memsluice.errors import BufferFull, ConfigError, MemsluiceError, NotDelivered, WriterClosed
from memsluice.events.models import MODELS, AnyPayload, Command
from memsluice.events.names import EVERYBODY
from memsluice.events.partition import partition_of
from memsluice.keystore.files import SigningCredential
from memsluice.topics.names import EVENTS

POLL_SECONDS = 0.2
PURGED_SECONDS = 30.0
"""What was purged is reported at once; only a process that stands still just then hears of it later."""
ASK_SECONDS = 0.2
"""How long a broker in doubt is asked at a time, between two looks for deliveries."""
SIGNERS_MAX = 32
EXIT_FLUSH_SECONDS = 10.0
MESSAGE_BYTES_MAX = 1_048_576
"""librdkafka's limit on a request's message, headers included; a record's own limit is RECORD_BYTES_MAX."""
_UNKNOWN_OUTCOME = {KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_INFLIGHT, KafkaError.REQUEST_TIMED_OUT}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The broker has the event: where it lies, and when it was appended there (Unix ms)."""

    event_id: str
    topic: str
    partition: int
    offset: int
    append_ms: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """An event that is signed, checked against the limits, and not published yet."""

    event_id: str
    topic: str
    message: Message
    sending: Sending
    expected: int
    """The partition on which the gate looks for it."""
    forced: int | None = None
    """The partition to name to the broker's client; None: its partitioner chooses, and is tested by every delivery."""


class Publisher:
    """Signs payloads and publishes them; the writers and channels are thin clothes over it. Safe for several threads.

    ``settings`` are librdkafka's, at least how to connect (``Connection.confluent``). ``credentials`` are those of all
    signers: one, a command's approvers, or none where all that is published was signed before. Raises ConfigError for
    settings, credentials or a topic that would put events where the gate does not look for them, InvalidArgument for
    an argument of another type, BrokerUnavailable where no broker answers in time.
    """

    roles: ClassVar[tuple[Role, ...]] = ()
    """Of the credentials that may publish here, the usual one first; none: of any role, and none is needed."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        credentials: held.Credentials | Sequence[held.Credentials],
        options: WriterOptions | None = None,
        *,
        topic: str = EVENTS,
    ) -> None:
        self.options = options_of(options)
        arguments.instance(
            "settings", settings, Mapping, "librdkafka's settings, as Connection.confluent(user) returns"
        )
        one = isinstance(credentials, Sequence) and not isinstance(credentials, str)
        every: Sequence[held.Credentials] = credentials if one else (credentials,)  # type: ignore[assignment]
        self._sources = [held.source_of(credential, self._now_ms) for credential in every]
        if self.roles:
            held.check_roles(type(self).__name__, self.roles, self._sources)
        self._topic = topic
        self._cache: dict[str, Signer] = {}
        self._closed = False
        self._gate = threading.Lock()  # between close() and the last produce()
        self._stop = threading.Event()
        check_samples(self.options.partitions)
        self._connectivity = connectivity_of(str(settings.get("bootstrap.servers", "")))
        self._producer = open_producer(settings, self.options, self._connectivity)
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
        return self.send(self.prepare(payload))

    def publish_to_all(self, payload: Command) -> "list[Future[Receipt]]":
        """As :meth:`publish`, once to every partition: what a command for all tenants needs."""
        return [self.send(self._prepare(payload, number)) for number in range(self.options.partitions)]

    def forward(self, payload: Command, envelope: dict[str, Any]) -> "list[Future[Receipt]]":
        """As :meth:`publish`, or :meth:`publish_to_all`, for a command that its operators have signed already."""
        everybody = payload.tenant == EVERYBODY
        own = partition_of(payload.tenant, self.options.partitions)
        partitions = range(self.options.partitions) if everybody else (own,)
        return [self.send(self._prepare(payload, number, envelope)) for number in partitions]

    def prepare(self, payload: AnyPayload) -> Prepared:
        """Sign an event for :meth:`send`. Raises ExpiredKey, NotPermitted or LimitExceeded, as :meth:`publish` does."""
        arguments.instance("payload", payload, tuple(MODELS.values()), "an event, such as a Write")
        return self._prepare(payload, partition_of(payload.tenant, self.options.partitions))

    def _prepare(self, payload: AnyPayload, partition: int, envelope: dict[str, Any] | None = None) -> Prepared:
        topic = topic_of(payload)
        sending = Sending(topic, payload.id, event_type_of(payload), self.options.entropy)
        try:
            message = wrap(
                payload,
                envelope or envelope_of(payload, self._signers(payload)),
                source=self.source(),
                traceparent=sending.traceparent,
                structured=self.options.structured,
            )
        except MemsluiceError as error:
            sending.failed(type(error).__name__)
            raise
        forced = partition if payload.tenant == EVERYBODY else None
        return Prepared(payload.id, topic, message, sending, partition, forced)

    def send(self, prepared: Prepared, receipt: "Future[Receipt] | None" = None) -> "Future[Receipt]":
        """Queue a prepared event, once; ``receipt`` is the future to resolve. Raises BufferFull, WriterClosed."""
        receipt = receipt or Future()
        receipt.set_running_or_notify_cancel()  # what was queued cannot be taken back
        try:
            with self._gate:
                if self._closed:
                    raise WriterClosed("the writer is closed", event_id=prepared.event_id)
                delivered = partial(self._delivered, receipt, prepared.sending, prepared.event_id, prepared.expected)
                self._produce(prepared.topic, prepared.message, delivered, prepared.forced)
        except MemsluiceError as error:
            prepared.sending.failed(type(error).__name__)
            raise
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
            _log.warning(
                "a writer was closed while the broker had not acknowledged %d events: they fail as WriterClosed", left
            )
            self._producer.purge(in_queue=True, in_flight=True)
            self._producer.flush(PURGED_SECONDS)
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
        except KafkaException:
            self._producer.poll(0)  # takes the reports of why
            raise self._connectivity.unavailable(timeout_s) from None
        if found.error is not None:
            raise ConfigError(f"topic {self._topic}: {_name(found.error)}; run: memsluice topics apply")
        if len(found.partitions) != self.options.partitions:
            raise ConfigError(
                f"topic {self._topic} has {len(found.partitions)} partitions, but the gate expects "
                f"{self.options.partitions}, so events would reach the wrong partition. Restore the partition count."
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
        self._connectivity.answered()
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
                _log.error(
                    "a callback that the application added to a receipt's future failed: %s", type(error).__name__
                )
            if self._connectivity.in_doubt and not self._closed:
                self._ask()

    def _ask(self) -> None:
        """Ask a broker in doubt whether it is there."""
        try:
            self._producer.list_topics(self._topic, timeout=ASK_SECONDS)
        except KafkaException:
            self._connectivity.silent()
        else:
            self._connectivity.answered()

    def _at_exit(self) -> None:
        self.close(EXIT_FLUSH_SECONDS)


def _name(error: Any) -> str:
    return f"{error.name()}: {error.str()}" if isinstance(error, KafkaError) else type(error).__name__


def open_producer(settings: Mapping[str, Any], options: WriterOptions, connectivity: Connectivity | None = None) -> Any:
    """Return librdkafka's producer under the fixed settings, which prints nothing itself. Raises ConfigError."""
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
        "error_cb": (lambda _error: None) if connectivity is None else connectivity.heard,
        "logger": LibrdkafkaLog(),  # else it writes to stderr by itself
    }
    try:
        return Producer(merged)
    except KafkaException as error:
        raise ConfigError(f"librdkafka refuses the settings: {_name(error.args[0])}") from None
