"""Whoever waits for the broker: one thread that has the desk, so that the screen never waits.

A desk is used from one thread. What is asked of it is done one after the other; where the broker goes away, the desk is
opened anew before the next thing is tried. It is the desk of the same kind: work that began on a broker does not go on
over an embedded log that lies in the same home.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from memsluice.deployment.home import Home
from memsluice.errors import BrokerError, BrokerUnavailable, ConfigError, MemsluiceError
from memsluice.operations.held import desk as desks
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.target import on_broker, opened

T = TypeVar("T")
ENDING_S = 3.0
"""How long leaving waits for what the thread does just now."""


@dataclass(frozen=True, slots=True)
class _Asked:
    work: Callable[[HeldDesk], Any]
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"


class Clerk:
    """The thread and its desk. Start it by ``with``; leaving ends every wait for an answer.

    Raises ConfigError on entering where there is no quarantine to review.
    """

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="memsluice-review", daemon=True)
        self._on_broker = False
        self._desk: HeldDesk | None = None
        self._closing = ExitStack()
        self._waiting = 0
        self.ending = False
        self.name = ""

    def __enter__(self) -> "Clerk":
        self._on_broker = on_broker(Home.at(self._home), self._home)
        with opened(self._home, desks.on_kafka, desks.embedded, "quarantine") as found:  # or it says what to do
            self.name = found.name
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending = True
        self._asked.put(None)
        self._thread.join(ENDING_S)  # a broker that answers nothing keeps nobody from leaving

    @property
    def others_wait(self) -> bool:
        """Whether something else is asked for meanwhile, or nobody waits any more."""
        return self.ending or self._waiting > 1

    @property
    def idle(self) -> bool:
        """Whether nothing is being done, or waits to be."""
        return self._waiting == 0

    @property
    def works(self) -> bool:
        """Whether the thread has not ended: leaving does not wait for it for ever."""
        return self._thread.is_alive()

    def monotonic(self) -> float:
        """Return seconds that only grow; beyond every deadline once somebody leaves."""
        return float("inf") if self.ending else time.monotonic()

    async def ask(self, work: Callable[[HeldDesk], T]) -> T:
        """Have something done with the desk, after all that was asked for before. Raises what it raises."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._waiting += 1
        answer.add_done_callback(self._done)
        self._asked.put(_Asked(work, loop, answer))
        return await asyncio.shield(answer)

    def _done(self, _: object) -> None:
        self._waiting -= 1

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None and not self.ending:
            result: Any = None
            failed: BaseException | None = None
            try:
                result = asked.work(self._opened())
            except BaseException as error:  # whoever asked is told, whatever it is
                failed = error
                if isinstance(error, BrokerError):
                    self._close()
            with suppress(RuntimeError):  # nobody waits any more
                asked.loop.call_soon_threadsafe(_tell, asked.answer, result, failed)
        self._close()

    def _opened(self) -> HeldDesk:
        if self._desk is None:
            if on_broker(Home.at(self._home), self._home) != self._on_broker:
                raise BrokerUnavailable(_moved(on_broker_before=self._on_broker))
            with ExitStack() as closing:
                found = opened(self._home, desks.on_kafka, desks.embedded, "quarantine")
                self._desk = closing.enter_context(found)
                self._closing = closing.pop_all()
            self.name = self._desk.name
        return self._desk

    def _close(self) -> None:
        self._desk = None
        with suppress(MemsluiceError, OSError):
            self._closing.close()


def _moved(*, on_broker_before: bool) -> str:
    if on_broker_before:
        return "the stack of this home does not run any more: start it with `memsluice stack up`"
    return "a stack was started in this home meanwhile: leave, and start memsluice review again to work there"


def _tell(answer: "asyncio.Future[Any]", result: Any, failed: BaseException | None) -> None:
    if answer.cancelled():
        return
    if failed is None:
        answer.set_result(result)
    elif isinstance(failed, Exception):
        answer.set_exception(failed)
    else:
        answer.set_exception(ConfigError(f"the review stopped ({type(failed).__name__}): start it again"))
