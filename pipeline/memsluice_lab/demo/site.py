"""Where a demo is played: the embedded runtime in this process, or the real stack. One interface for both."""

from collections.abc import Callable
from typing import Protocol

from memsluice.encoder import Encoder
from memsluice.events.models import Recall
from memsluice.events.records import Headers
from memsluice.recall.recaller import Recaller
from memsluice.stores.base import VectorStore

Message = tuple[bytes | None, bytes | None, Headers]
Say = Callable[[str], None]


class Site(Protocol):
    """A running gate that messages can be sent to."""

    title: str
    store: VectorStore
    """Opened with the rights of *land*: what somebody with access to the store could do."""

    def at(self, minute: float) -> None:
        """Move the day's clock on, in minutes from its start; the real stack lives in the present and ignores it."""

    def now_ms(self) -> int:
        """Return the time in Unix milliseconds by which the site's log stamps records."""

    def send(self, topic: str, message: Message, *, partition: int | None = None) -> tuple[str, int, int]:
        """Append a message durably; return (topic, partition, offset)."""

    def settle(self) -> None:
        """Wait until everything sent so far has a verdict and, where it lands, has landed."""

    def catch_up(self) -> None:
        """Give the stages a chance before a question; the real stack, which runs by itself, does nothing."""

    def recaller(self, encoder: Encoder, publish: Callable[[Recall], None], new_id: Callable[[], str]) -> Recaller:
        """Return what asks this site's memory."""

    def close(self) -> None:
        """Stop what was started."""
