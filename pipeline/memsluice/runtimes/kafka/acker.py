"""Acknowledgement strictly in order: a deque per partition, the head goes when all its sends are confirmed.

Faust commits up to the highest run of acknowledged offsets it can see and skips un-acknowledged ones before it
(upstream issue 606). Acknowledged in order, there is nothing to skip.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol


class Acknowledgeable(Protocol):
    """The part of Faust's message that is used here."""

    @property
    def tp(self) -> Hashable:
        """Topic and partition."""


class _Entry:
    __slots__ = ("generation", "left", "message")

    def __init__(self, message: Acknowledgeable, generation: int, left: int) -> None:
        self.message = message
        self.generation = generation
        self.left = left


class Acker:
    """Releases messages in order. Bounded by whoever calls :meth:`below` before :meth:`add`."""

    def __init__(self, release: Callable[[Any], None], fail: Callable[[BaseException], None]) -> None:
        self._release = release
        self._fail = fail
        self._queues: dict[Hashable, deque[_Entry]] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._closed = False
        self.generation = 0
        self.outstanding = 0

    def add(self, message: Acknowledgeable, futures: Sequence["asyncio.Future[Any]"]) -> None:
        """Queue ``message``; it is released once its futures and all messages before it have succeeded."""
        entry = _Entry(message, self.generation, len(futures))
        self._queues.setdefault(message.tp, deque()).append(entry)
        self.outstanding += 1
        for future in futures:
            future.add_done_callback(lambda done, entry=entry: self._done(entry, done))  # type: ignore[misc]
        if not futures:
            self._advance(message.tp)

    def clear(self) -> None:
        """Start a new generation: nothing queued so far will ever be released."""
        self.generation += 1
        self._queues.clear()
        self.outstanding = 0
        self._wake()

    def close(self) -> None:
        """Release nothing any more, not even what is confirmed later."""
        self._closed = True
        self.clear()

    async def below(self, limit: int) -> None:
        """Wait until fewer than ``limit`` messages are outstanding."""
        while self.outstanding >= limit:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _done(self, entry: _Entry, future: "asyncio.Future[Any]") -> None:
        error = asyncio.CancelledError("a send was cancelled") if future.cancelled() else future.exception()
        if self._closed or entry.generation != self.generation:
            return
        if error is not None:
            self.close()
            self._fail(error)
            return
        entry.left -= 1
        if entry.left == 0:
            self._advance(entry.message.tp)

    def _advance(self, tp: Hashable) -> None:
        queue = self._queues[tp]
        while queue and queue[0].left == 0 and not self._closed:
            entry = queue.popleft()
            self.outstanding -= 1
            self._release(entry.message)
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
