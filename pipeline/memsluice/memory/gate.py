"""What a memory stands on: a gate that takes events, tells what became of them, and answers recalls."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from typing import Protocol, TypeVar

from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session
from memsluice.encoder import Encoder
from memsluice.events.models import Observation, Recall, Write
from memsluice.memory.waiting import Waiting
from memsluice.recall.instructions.policy import InstructionCheck
from memsluice.recall.recaller import Recaller

Event = Write | Recall | Observation
Instructions = Callable[[Encoder], InstructionCheck]
"""Makes what reads entries for instructions before they are shown, with the memory's encoder. Without one the published
patterns alone are looked for."""
_T = TypeVar("_T")


class Gate(Protocol):
    """One tenant's gate. Safe for several threads.

    ``waiting`` hears the verdicts and what landed of the events that are published here. Events of one session reach
    the log in the order of the calls.
    """

    tenant: str
    waiting: Waiting

    def reading(self, call: Callable[[Recaller], _T]) -> _T:
        """Return what a call returns that is given what answers recalls, in whichever thread that belongs to."""

    def publish(self, session: Session, event: Event) -> "Future[Receipt]":
        """Publish a session's event; the future resolves once the log has it. Raises ProducerError and InputError."""

    def new_id(self) -> str:
        """Return an event id that was not used."""

    def now(self) -> datetime:
        """Return the time, with a zone."""

    def close(self) -> None:
        """End what was opened. Closing again does nothing."""
