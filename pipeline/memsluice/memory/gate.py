"""What a memory stands on: a gate that takes events, tells what became of them, and answers recalls."""

from collections.abc import Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Protocol

from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session
from memsluice.events.models import Observation, Recall, Write
from memsluice.memory.waiting import Waiting
from memsluice.recall.recaller import Named, Narrow, Publish, Question, Recalled

Event = Write | Recall | Observation


class Reads(Protocol):
    """What is asked of a memory; see :class:`~memsluice.recall.recaller.Recaller`, which is one."""

    def ask(self, question: Question, publish: Publish | None = None, *, narrow: Narrow = tuple) -> Recalled:
        """Search, publish what will be returned, and return it."""

    def look_up(
        self,
        question: Question,
        ids: Sequence[str] | None = None,
        publish: Publish | None = None,
        *,
        narrow: Narrow = tuple,
    ) -> Recalled:
        """Return entries by their ids, or all, published likewise."""

    def lies(self, question: Question, ids: Sequence[str]) -> tuple[Named, ...]:
        """Return the names of what lies there; nothing is shown."""


class Gate(Protocol):
    """One tenant's gate. Safe for several threads.

    ``waiting`` hears the verdicts and what landed of the events that are published here. Events of one session reach
    the log in the order of the calls.
    """

    tenant: str
    waiting: Waiting

    @property
    def recaller(self) -> Reads:
        """What answers."""

    def publish(self, session: Session, event: Event) -> "Future[Receipt]":
        """Publish a session's event; the future resolves once the log has it. Raises ProducerError and InputError."""

    def new_id(self) -> str:
        """Return an event id that was not used."""

    def now(self) -> datetime:
        """Return the time, with a zone."""

    def close(self) -> None:
        """End what was opened. Closing again does nothing."""
