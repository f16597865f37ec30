"""One agent's session: what it wrote, recalled and saw reaches the log in the order in which it was called.

Writer, recall channel and runtime channel are three clients of the broker, each with a buffer of its own: a write that
was not awaited may be appended behind an observation that was called later, and is then judged as if the session had
seen the page before it wrote. An :class:`AgentSession` hands over one event at a time.
"""

import atexit
import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self, Unpack

from memsluice.client import arguments, requests
from memsluice.client.extraction import Extracted, Extraction, ExtractionBounds, Extractor
from memsluice.client.options import INTEGER_MAX, WriterOptions
from memsluice.client.publisher import EXIT_FLUSH_SECONDS, Prepared, Publisher, Receipt
from memsluice.client.requests import Session, WriteOptions
from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.errors import BufferFull, ConfigError, EarlierFailed, MemsluiceError, NotPermitted, WriterClosed
from memsluice.events.models import Observation, Origin, Recall, Returned, Visibility, Write, Zone

PENDING_MAX = 1_000
"""Events of one session that may wait for their turn; each is at most RECORD_BYTES_MAX large."""
_log = logging.getLogger(__name__)


class _Event:
    """An event that was called and is not acknowledged."""

    def __init__(self, channel: Publisher, payload: Write | Recall | Observation) -> None:
        self.channel = channel
        self.payload = payload
        self.prepared: Prepared = channel.prepare(payload)
        self.receipt = _future()

    def never_sent(self, error: MemsluiceError) -> MemsluiceError:
        """End the span of an event that was not handed to its channel; return why it was not."""
        self.prepared.sending.failed(type(error).__name__)
        return error


class AgentSession:
    """Writes, recalls and observations of one session, in the order of the calls. Safe for several threads.

    >>> from memsluice import AgentSession, Origin, Session
    >>> session = Session(tenant="acme", agent="assistant", principal="ada", session="tuesday-1")
    >>> with AgentSession.open_local(session) as agent:
    ...     opened = agent.open_session()
    ...     noted = agent.write("Ada wants invoices as PDF.")
    ...     seen = agent.observe(Origin.WEB)
    >>> opened.result().offset < noted.result().offset < seen.result().offset
    True

    **The guarantee.** An event is handed to the broker after the broker has acknowledged the one called before it, and
    not before. So what the log holds of this object's events is in the order of the calls and has no gap: where an
    event is, all earlier ones are. No call waits: each signs its event, raises what the gate would refuse, and returns
    a future.

    **A failure stops the session.** The event that the broker did not acknowledge fails as usual (NotDelivered), all
    that were called after it fail as EarlierFailed and are not published, and so does every further call, until
    :meth:`retry` publishes them again in their order, under the ids that they had. Where the failed event's
    ``maybe_written`` is set the broker may have it: the gate knows the second one for a duplicate.

    **Limits.** At most ``pending_max`` events wait; the next call raises BufferFull. An event costs a round trip to the
    broker, and a batch's ``linger_ms``. The order holds among the calls on one object: close it before another process
    goes on with the session. Channels given to the constructor may serve many sessions and are not closed with them.
    """

    def __init__(
        self,
        session: Session,
        writer: MemoryWriter,
        runtime: RuntimeChannel,
        recalls: RecallChannel | None = None,
        *,
        pending_max: int = PENDING_MAX,
    ) -> None:
        requests.session_only(session)
        arguments.instance("writer", writer, MemoryWriter, "a MemoryWriter")
        arguments.instance("runtime", runtime, RuntimeChannel, "a RuntimeChannel")
        arguments.instance("recalls", recalls, (RecallChannel, type(None)), "a RecallChannel, or None")
        arguments.whole("argument pending_max", pending_max, 1, INTEGER_MAX)
        self.session = session
        self._channels: dict[type[object], Publisher] = {Write: writer, Observation: runtime}
        if recalls is not None:
            self._channels[Recall] = recalls
        self._without_recalls = "it was not given a RecallChannel"
        self._pending_max = pending_max
        self._events: deque[_Event] = deque()
        """The first is with the broker, the others wait for it; after a failure none is, and all wait for a retry."""
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False
        self._owned = ExitStack()

    @classmethod
    def open_local(
        cls,
        session: Session,
        *,
        home: Path | None = None,
        options: WriterOptions | None = None,
        pending_max: int = PENDING_MAX,
    ) -> Self:
        """Open the session on a home's stack, with channels of its own, which are closed with it.

        Without a reader's credential it opens all the same, and the first recall says what to run. Raises ConfigError,
        which says what to run, where the stack or another credential is missing, and BrokerUnavailable. For many
        sessions open the channels once and give them to the constructor.
        """
        requests.session_only(session)
        arguments.whole("argument pending_max", pending_max, 1, INTEGER_MAX)
        with ExitStack() as opened:
            tenant, recalls, missing = session.tenant, None, ""
            writer = opened.enter_context(
                MemoryWriter.open_local(tenant=tenant, channel="agent", home=home, options=options)
            )
            runtime = opened.enter_context(RuntimeChannel.open_local(tenant=tenant, home=home, options=options))
            try:
                recalls = opened.enter_context(RecallChannel.open_local(tenant=tenant, home=home, options=options))
            except ConfigError as error:
                missing = str(error)
            made = cls(session, writer, runtime, recalls, pending_max=pending_max)
            made._without_recalls = missing
            made._owned = opened.pop_all()
        return made

    def open_session(self) -> "Future[Receipt]":
        """Say that the platform opened the session and nothing was seen yet; once a session, before anything else."""
        return self.observe(Origin.OPEN)

    def write(
        self,
        content: str,
        *,
        event_id: str | None = None,
        time: datetime | None = None,
        **options: Unpack[WriteOptions],
    ) -> "Future[Receipt]":
        """Publish a write after everything called before; see :meth:`MemoryWriter.write`."""
        channel = self._channel(Write)
        return self.publish(
            requests.write(event_id or channel.new_id(), time or channel.now(), self.session, content, options)
        )

    def observe(self, origin: Origin, *, digest: str | None = None, content: str | None = None) -> "Future[Receipt]":
        """Say what the session saw, after everything called before; see :meth:`RuntimeChannel.observe`."""
        channel = self._channel(Observation)
        return self.publish(
            requests.observation(channel.new_id(), channel.now(), self.session, origin, digest, content)
        )

    def recalled(
        self,
        question: str,
        returned: Sequence[Returned],
        *,
        namespace: str = "default",
        zone: Zone = Zone.GUIDANCE,
        vector: str | None = None,
    ) -> "Future[Receipt]":
        """Publish what the session asked and is about to be given, after everything called before.

        ``Recaller.recall_in`` asks and publishes in one step.
        """
        channel = self._channel(Recall)
        return self.publish(
            requests.recall(
                channel.new_id(), channel.now(), self.session, question, returned, namespace=namespace, zone=zone,
                vector=vector,
            )
        )  # fmt: skip

    def extract(
        self,
        outside_text: str,
        extractor: Extractor,
        *,
        source: Origin,
        bounds: ExtractionBounds | None = None,
        namespace: str = "default",
        visibility: Visibility = Visibility.PRINCIPAL,
    ) -> Extracted:
        """Observe an outside text, let an extractor make facts of it, and write each; wait until the broker has all.

        The extractor is called once the observation is acknowledged, and with it the session is tainted. Each fact is a
        write of kind ``facts`` with the observation as its parent, so it is outside content as the text is. Raises
        ExtractionFailed where the extractor fails or returns anything else than facts within the bounds: then nothing
        is written. Raises InvalidArgument before anything is published, and what :meth:`publish` and its future raise.
        """
        extraction = Extraction.begun(outside_text, extractor, source, bounds, namespace, visibility)
        observed = self.observe(source, digest=extraction.digest).result()
        pending = self._written(extraction, observed, extraction.facts_by(extractor))
        return Extracted(observed, tuple(one.result() for one in pending))

    def _written(self, extraction: Extraction, observed: Receipt, found: Sequence[str]) -> "list[Future[Receipt]]":
        channel = self._channel(Write)
        made = extraction.writes(found, observed.event_id, self.session, channel.new_id, channel.now())
        return [self.publish(one) for one in made]

    def publish(self, payload: Write | Recall | Observation) -> "Future[Receipt]":
        """Publish an event of this session after everything called before.

        Raises at once, with nothing queued: BufferFull, WriterClosed, EarlierFailed where the session waits for a
        :meth:`retry`, NotPermitted for an event of another session, and what :meth:`Publisher.publish` raises.
        """
        arguments.instance("payload", payload, (Write, Recall, Observation), "a Write, a Recall or an Observation")
        if Session(payload.tenant, payload.agent, payload.principal, payload.session) != self.session:
            raise NotPermitted("the event is of another session", field="session")
        event = _Event(self._channel(type(payload)), payload)
        with self._changed:
            self._append(event)
        return event.receipt

    def _channel(self, kind: type[Write | Recall | Observation]) -> Publisher:
        if kind not in self._channels:
            raise ConfigError(f"the session has no channel for recalls: {self._without_recalls}")
        return self._channels[kind]

    def _append(self, event: _Event) -> None:
        refused = self._refused(event.payload.id)
        if refused is not None:
            raise event.never_sent(refused)
        self._events.append(event)
        if len(self._events) == 1:
            try:
                self._send(event)
            except BaseException:
                self._events.clear()
                raise
            atexit.register(self._at_exit)

    def _refused(self, event_id: str) -> MemsluiceError | None:
        if self._closed:
            return WriterClosed("the session is closed", event_id=event_id)
        if self._failure is not None:
            return _not_sent(event_id)
        if len(self._events) >= self._pending_max:
            return BufferFull(f"{self._pending_max} events of the session wait already", event_id=event_id)
        return None

    def _send(self, event: _Event) -> None:
        receipt: Future[Receipt] = Future()
        receipt.add_done_callback(partial(self._settled, event))  # called by the channel's thread, never by this one
        event.channel.send(event.prepared, receipt)

    def _settled(self, event: _Event, receipt: "Future[Receipt]") -> None:
        """Go on with the next event, or stop the session; only then tell the caller of this one."""
        error = receipt.exception()
        lost: list[tuple[_Event, BaseException]] = []
        with self._changed:
            if error is not None:
                lost = self._stop(error)
            else:
                self._events.popleft()
                if self._events:
                    try:
                        self._send(self._events[0])
                    except MemsluiceError as refused:  # the channel's own buffer is full, or it was closed
                        lost = self._stop(refused)
            if not self._events or self._failure is not None:
                atexit.unregister(self._at_exit)
            self._changed.notify_all()
        if error is None:
            event.receipt.set_result(receipt.result())
        for one, problem in lost:
            one.receipt.set_exception(problem)

    def _stop(self, error: BaseException) -> "list[tuple[_Event, BaseException]]":
        self._failure = error
        first, *later = self._events
        _log.info(  # the future of each tells its caller, and so does every further call
            "event %s of a session was not published (%s), nor %d called after it: retry() publishes them in order",
            first.payload.id,
            type(error).__name__,
            len(later),
        )
        return [(first, error), *((one, one.never_sent(_not_sent(one.payload.id))) for one in later)]

    @property
    def failure(self) -> BaseException | None:
        """Why the session stopped; None while it runs."""
        return self._failure

    def retry(self) -> "list[Future[Receipt]]":
        """Publish what failed again, in order and under the same ids; return the new futures, in that order.

        Each is signed anew, with the credential in force. Raises WriterClosed, and what :meth:`publish` raises: the
        session then waits for another retry. Does nothing where nothing has failed.
        """
        with self._changed:
            if self._failure is None:
                return []
            if self._closed:
                raise WriterClosed("the session is closed", event_id=self._events[0].payload.id)
            again = deque(_Event(event.channel, event.payload) for event in self._events)
            self._send(again[0])
            self._events, self._failure = again, None
            atexit.register(self._at_exit)
            return [event.receipt for event in again]

    def flush(self, timeout_s: float = 30.0) -> int:
        """Wait until every event is acknowledged or the session has stopped; return how many wait still."""
        with self._changed:
            self._changed.wait_for(self._idle, timeout_s)
            return 0 if self._idle() else len(self._events)

    def _idle(self) -> bool:
        return not self._events or self._failure is not None

    def close(self, timeout_s: float = 30.0) -> None:
        """Flush, fail what still waits for its turn, and give up what failed. Closing again does nothing."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
        self.flush(timeout_s)
        with self._changed:
            lost = len(self._events)
            waiting = [] if self._failure is not None else list(self._events)[1:]
            for _ in waiting:
                self._events.pop()
        for event in waiting:
            reason = WriterClosed("the session was closed before its turn", event_id=event.payload.id)
            event.receipt.set_exception(event.never_sent(reason))
        if lost:
            _log.warning("a session was closed with %d events that were not published", lost)
        atexit.unregister(self._at_exit)
        self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _at_exit(self) -> None:
        self.close(EXIT_FLUSH_SECONDS)


def _future() -> "Future[Receipt]":
    made: Future[Receipt] = Future()
    made.set_running_or_notify_cancel()  # what was called cannot be taken back
    return made


def _not_sent(event_id: str) -> EarlierFailed:
    return EarlierFailed(
        "an earlier event of the session was not published, so this one was held back; retry() publishes them in order",
        event_id=event_id,
    )
