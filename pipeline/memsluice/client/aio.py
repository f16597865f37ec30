"""The same writers for asyncio: awaitables instead of futures, and nothing that blocks the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar, Unpack

from memsluice.client import arguments
from memsluice.client.credentials import Credentials
from memsluice.client.extraction import Extracted, Extraction, ExtractionBounds, Extractor
from memsluice.client.options import WriterOptions
from memsluice.client.publisher import Publisher, Receipt
from memsluice.client.requests import Session, WriteOptions
from memsluice.client.session import PENDING_MAX, AgentSession
from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.events.models import AnyPayload, Channel, Observation, Origin, Recall, Returned, Visibility, Write, Zone

_P = TypeVar("_P", bound=Publisher)


class _Async(Generic[_P]):
    """A publisher whose start and end wait in a worker thread. Use ``async with await Class.open(...)``."""

    _kind: type[Any]

    def __init__(self, inner: _P) -> None:
        self._inner = inner

    @classmethod
    async def open(
        cls, settings: Mapping[str, Any], credentials: Credentials, options: WriterOptions | None = None
    ) -> Self:
        """Start the writer; see :class:`Publisher` for what it checks and raises."""
        return cls(await asyncio.to_thread(cls._kind, settings, credentials, options))

    @classmethod
    async def open_local(cls, *, tenant: str, home: Path | None = None, options: WriterOptions | None = None) -> Self:
        """Start it on a home's stack with its newest credential for a tenant; see ``MemoryWriter.open_local``."""
        return cls(await asyncio.to_thread(cls._kind.open_local, tenant=tenant, home=home, options=options))

    async def publish(self, payload: AnyPayload) -> Receipt:
        """Publish any payload; see :meth:`Publisher.publish`."""
        return await asyncio.wrap_future(self._inner.publish(payload))

    async def flush(self, timeout_s: float = 30.0) -> int:
        """Wait until every queued event is acknowledged or failed; return how many still are neither."""
        return await asyncio.to_thread(self._inner.flush, timeout_s)

    async def close(self, timeout_s: float = 30.0) -> None:
        """Flush, fail what is unacknowledged, stop."""
        await asyncio.to_thread(self._inner.close, timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncMemoryWriter(_Async[MemoryWriter]):
    """Asyncio counterpart of :class:`MemoryWriter`."""

    _kind = MemoryWriter

    @classmethod
    async def open_local(
        cls,
        *,
        tenant: str,
        role: Literal["producer", "user_channel"] = "producer",
        channel: Channel | None = None,
        home: Path | None = None,
        options: WriterOptions | None = None,
    ) -> Self:
        """As :meth:`MemoryWriter.open_local`."""
        return cls(
            await asyncio.to_thread(
                MemoryWriter.open_local, tenant=tenant, role=role, channel=channel, home=home, options=options
            )
        )

    def write(
        self,
        session: Session,
        content: str,
        *,
        event_id: str | None = None,
        time: datetime | None = None,
        **options: Unpack[WriteOptions],
    ) -> "asyncio.Future[Receipt]":
        """Publish a write at once; the returned awaitable gives the receipt. Cancelling it does not unpublish."""
        return asyncio.wrap_future(self._inner.write(session, content, event_id=event_id, time=time, **options))

    def appeal(self, tenant: str, event_id: str) -> "asyncio.Future[Receipt]":
        """Ask for a review of a write of this credential that was held."""
        return asyncio.wrap_future(self._inner.appeal(tenant, event_id))


class AsyncRecallChannel(_Async[RecallChannel]):
    """Asyncio counterpart of :class:`RecallChannel`."""

    _kind = RecallChannel

    def recalled(
        self,
        session: Session,
        question: str,
        returned: Sequence[Returned],
        *,
        namespace: str = "default",
        zone: Zone = Zone.GUIDANCE,
        vector: str | None = None,
    ) -> "asyncio.Future[Receipt]":
        """Publish what a session asked and what it is about to be given; await it before showing the content."""
        pending = self._inner.recalled(session, question, returned, namespace=namespace, zone=zone, vector=vector)
        return asyncio.wrap_future(pending)


class AsyncRuntimeChannel(_Async[RuntimeChannel]):
    """Asyncio counterpart of :class:`RuntimeChannel`."""

    _kind = RuntimeChannel

    def open_session(self, session: Session) -> "asyncio.Future[Receipt]":
        """Say that the platform opened the session and nothing was seen yet."""
        return asyncio.wrap_future(self._inner.open_session(session))

    def observe(
        self, session: Session, origin: Origin, *, digest: str | None = None, content: str | None = None
    ) -> "asyncio.Future[Receipt]":
        """Say what the session saw, before the model sees it."""
        return asyncio.wrap_future(self._inner.observe(session, origin, digest=digest, content=content))


class AsyncAgentSession:
    """Asyncio counterpart of :class:`AgentSession`, with its guarantee: the order is that of the calls, not the awaits.

    >>> import asyncio
    >>> from memsluice import AsyncAgentSession, Origin, Session
    >>> async def visit() -> bool:
    ...     session = Session(tenant="acme", agent="assistant", principal="ada", session="tuesday-2")
    ...     async with await AsyncAgentSession.open_local(session) as agent:
    ...         opened = agent.open_session()
    ...         noted = agent.write("Ada wants invoices as PDF.")
    ...         await agent.observe(Origin.WEB)
    ...         return (await opened).offset < (await noted).offset
    >>> asyncio.run(visit())
    True
    """

    def __init__(
        self,
        session: Session,
        writer: AsyncMemoryWriter,
        runtime: AsyncRuntimeChannel,
        recalls: AsyncRecallChannel | None = None,
        *,
        pending_max: int = PENDING_MAX,
    ) -> None:
        arguments.instance("writer", writer, AsyncMemoryWriter, "an AsyncMemoryWriter")
        arguments.instance("runtime", runtime, AsyncRuntimeChannel, "an AsyncRuntimeChannel")
        arguments.instance("recalls", recalls, (AsyncRecallChannel, type(None)), "an AsyncRecallChannel, or None")
        channel = None if recalls is None else recalls._inner
        self._inner = AgentSession(session, writer._inner, runtime._inner, channel, pending_max=pending_max)

    @classmethod
    async def open_local(
        cls,
        session: Session,
        *,
        home: Path | None = None,
        options: WriterOptions | None = None,
        pending_max: int = PENDING_MAX,
    ) -> Self:
        """As :meth:`AgentSession.open_local`."""
        made = cls.__new__(cls)
        made._inner = await asyncio.to_thread(
            AgentSession.open_local, session, home=home, options=options, pending_max=pending_max
        )
        return made

    @property
    def session(self) -> Session:
        """Whose session it is."""
        return self._inner.session

    @property
    def failure(self) -> BaseException | None:
        """Why the session stopped; None while it runs."""
        return self._inner.failure

    def open_session(self) -> "asyncio.Future[Receipt]":
        """As :meth:`AgentSession.open_session`."""
        return asyncio.wrap_future(self._inner.open_session())

    def write(
        self,
        content: str,
        *,
        event_id: str | None = None,
        time: datetime | None = None,
        **options: Unpack[WriteOptions],
    ) -> "asyncio.Future[Receipt]":
        """As :meth:`AgentSession.write`. Cancelling the awaitable does not unpublish."""
        return asyncio.wrap_future(self._inner.write(content, event_id=event_id, time=time, **options))

    def observe(
        self, origin: Origin, *, digest: str | None = None, content: str | None = None
    ) -> "asyncio.Future[Receipt]":
        """As :meth:`AgentSession.observe`."""
        return asyncio.wrap_future(self._inner.observe(origin, digest=digest, content=content))

    def recalled(
        self,
        question: str,
        returned: Sequence[Returned],
        *,
        namespace: str = "default",
        zone: Zone = Zone.GUIDANCE,
        vector: str | None = None,
    ) -> "asyncio.Future[Receipt]":
        """As :meth:`AgentSession.recalled`."""
        pending = self._inner.recalled(question, returned, namespace=namespace, zone=zone, vector=vector)
        return asyncio.wrap_future(pending)

    async def extract(
        self,
        outside_text: str,
        extractor: Extractor | Callable[[str], Awaitable[Sequence[str]]],
        *,
        source: Origin,
        bounds: ExtractionBounds | None = None,
        namespace: str = "default",
        visibility: Visibility = Visibility.PRINCIPAL,
    ) -> Extracted:
        """As :meth:`AgentSession.extract`; an extractor that is a coroutine function is awaited, any other in a thread.

        Cancelling it before the extractor has answered writes nothing; the observation stays.
        """
        extraction = Extraction.begun(outside_text, extractor, source, bounds, namespace, visibility)
        observed = await self.observe(source, digest=extraction.digest)
        awaits = iscoroutinefunction(extractor) or iscoroutinefunction(type(extractor).__call__)
        call: Callable[[str], Any] = extractor if awaits else partial(_in_a_thread, extractor)
        pending = self._inner._written(extraction, observed, await extraction.facts_awaited(call))
        written = await asyncio.gather(*map(asyncio.wrap_future, pending), return_exceptions=True)
        failed = next((one for one in written if isinstance(one, BaseException)), None)
        if failed is not None:  # all are asked first, so that no failure is left that nobody took
            raise failed
        return Extracted(observed, tuple(one for one in written if not isinstance(one, BaseException)))

    def publish(self, payload: Write | Recall | Observation) -> "asyncio.Future[Receipt]":
        """As :meth:`AgentSession.publish`."""
        return asyncio.wrap_future(self._inner.publish(payload))

    def retry(self) -> "list[asyncio.Future[Receipt]]":
        """As :meth:`AgentSession.retry`."""
        return [asyncio.wrap_future(pending) for pending in self._inner.retry()]

    async def flush(self, timeout_s: float = 30.0) -> int:
        """As :meth:`AgentSession.flush`."""
        return await asyncio.to_thread(self._inner.flush, timeout_s)

    async def close(self, timeout_s: float = 30.0) -> None:
        """As :meth:`AgentSession.close`."""
        await asyncio.to_thread(self._inner.close, timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _in_a_thread(extractor: Callable[[str], Any], text: str) -> Any:
    return await asyncio.to_thread(extractor, text)
