"""How a writer publishes."""

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, get_args

from memsluice.client import arguments
from memsluice.errors import InvalidArgument
from memsluice.events.limits import SOURCE_CHARS_MAX
from memsluice.topics.names import PARTITIONS

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
INTEGER_MAX = 2**31 - 1
"""The largest number that librdkafka's settings take."""
SECONDS_MIN = 0.001
SECONDS_MAX = 2_000_000
"""librdkafka counts milliseconds, up to INTEGER_MAX."""
LINGER_MS_MAX = 900_000


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """How a writer or a channel publishes. The defaults suit a platform; a test injects time, ids and randomness here.

    A value that is not allowed is an InvalidArgument, which names the option.

    A service that would rather hear of a failure after five seconds, and hold little meanwhile:

    >>> from memsluice import MemoryWriter, Session, WriterOptions
    >>> options = WriterOptions(delivery_seconds=5, buffer_messages=500)
    >>> session = Session(tenant="acme", agent="assistant", principal="ada", session="s-1")
    >>> with MemoryWriter.open_local(tenant="acme", options=options) as memory:
    ...     memory.write(session, "Ada prefers tea.").result(timeout=10).topic
    'memory.events.v1'

    One event at a time, each awaited: there is nothing to wait for in order to fill a batch.

    >>> options = WriterOptions(linger_ms=0)

    A process that must start while the broker is away; every delivery is checked anyway:

    >>> options = WriterOptions(check_seconds=None)

    A test that knows every byte beforehand:

    >>> from datetime import UTC, datetime
    >>> options = WriterOptions(
    ...     clock=lambda: datetime(2026, 3, 2, 9, tzinfo=UTC), new_id=lambda: "note-1", entropy=lambda size: b"7" * size
    ... )

    Attributes:
        compression: of the batches on their way to the broker.
        structured: put the CloudEvents attributes into the value instead of the headers.
        buffer_messages: events that may wait for the broker; the next raises BufferFull.
        buffer_kib: KiB that may wait for the broker.
        linger_ms: how long an event waits for others that could go with it.
        delivery_seconds: how long an event may stay unacknowledged before its future fails with NotDelivered.
        check_seconds: how long start-up may ask the broker for the topic's partitions; None: it does not ask.
        partitions: of the topics; the gate expects the default.
        source: CloudEvents source, at most 256 characters; None: made from role and key id.
        clock: gives the time, with its zone.
        new_id: gives the ids of events that are not given one.
        entropy: gives so many random bytes, for the ids of traces.
    """

    compression: Compression = "lz4"
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

    def __post_init__(self) -> None:
        if self.compression not in get_args(Compression):
            _refuse("compression", f"one of {', '.join(get_args(Compression))}", self.compression)
        structured: object = self.structured
        if not isinstance(structured, bool):
            _refuse("structured", "True or False", structured)
        for name in ("buffer_messages", "buffer_kib", "partitions"):
            arguments.whole(f"option {name}", getattr(self, name), 1, INTEGER_MAX)
        arguments.number("option linger_ms", self.linger_ms, 0, LINGER_MS_MAX)
        arguments.number("option delivery_seconds", self.delivery_seconds, SECONDS_MIN, SECONDS_MAX)
        if self.delivery_seconds * 1000 <= self.linger_ms:
            _refuse("delivery_seconds", f"longer than linger_ms, {self.linger_ms:g} ms", self.delivery_seconds)
        if self.check_seconds is not None:
            arguments.number("option check_seconds", self.check_seconds, SECONDS_MIN, SECONDS_MAX)
        if self.source is not None and not (isinstance(self.source, str) and 0 < len(self.source) <= SOURCE_CHARS_MAX):
            _refuse("source", f"a string of 1 to {SOURCE_CHARS_MAX} characters, or None", self.source)
        for name in ("clock", "new_id", "entropy"):
            if not callable(getattr(self, name)):
                _refuse(name, "a function", getattr(self, name))


def _refuse(name: str, must: str, value: object) -> None:
    raise InvalidArgument(f"option {name} must be {must}; it is {arguments.shown(value)}")


def options_of(given: WriterOptions | None) -> WriterOptions:
    """Return the options given, else the defaults. Raises InvalidArgument for anything else, such as a dict."""
    arguments.instance("options", given, (WriterOptions, type(None)), "WriterOptions(...), or None for the defaults")
    return given or WriterOptions()
