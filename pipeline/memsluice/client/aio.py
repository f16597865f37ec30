"""The same writers for asyncio: awaitables instead of futures, and nothing that blocks the event loop."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Self, TypeVar, Unpack

from memsluice.client.credentials import Credentials
from memsluice.client.publisher import Options, Publisher, Receipt
from memsluice.client.requests import Session, WriteOptions
from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.events.models import AnyPayload, Origin, Returned, Zone

_P = TypeVar("_P", bound=Publisher)


class _Async(Generic[_P]):
    """A publisher whose start and end wait in a worker thread. Use ``async with await Class.open(...)``."""

    _kind: type[Any]

    def __init__(self, inner: _P) -> None:
        self._inner = inner

    @classmethod
    async def open(cls, settings: Mapping[str, Any], credentials: Credentials, options: Options | None = None) -> Self:
        """Start the writer; see :class:`Publisher` for what it checks and raises."""
        return cls(await asyncio.to_thread(cls._kind, settings, credentials, options))

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
