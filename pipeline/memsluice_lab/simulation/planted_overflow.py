"""Bugs in what waits: who is overtaken, who is counted, and which moved event names which."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from memsluice.runtimes.kafka.overflow import Found, Overflow, Restoring
from memsluice.stages.quota import TenantLanes

Patches = Iterator[Any]
"""What ``patch`` returned, one a change."""


def overtaken() -> Patches:
    """An event within its tenant's quota goes straight on, although others of the tenant wait."""
    honest = TenantLanes.straight

    def straight(self: Any, tenant: str, append_ms: int) -> bool:
        with patch.object(self, "waiting", Counter()):
            return honest(self, tenant, append_ms)

    yield patch.object(TenantLanes, "straight", straight)


def forgotten() -> Patches:
    """Whoever takes a partition over does not count what waits there."""
    honest = Restoring._read

    def read(self: Any, base: int, given_up: Any) -> Found:
        return honest(self, base, given_up)._replace(waiting=Counter())

    yield patch.object(Restoring, "_read", read)


def passed_over() -> Patches:
    """Every seventh event that waits is not taken back, and its offset is committed with the next one's."""
    honest = Overflow.hold

    def hold(self: Any, generation: int, message: Any) -> None:
        if message.offset % 7 == 6:
            return
        honest(self, generation, message)

    yield patch.object(Overflow, "hold", hold)


def named_wrongly() -> Patches:
    """A moved event names the intake event before it, moved or not."""
    honest = Overflow.choose

    def choose(self: Any, message: Any) -> Any:
        chosen = honest(self, message)
        if chosen is not None and chosen.after is not None:
            return chosen._replace(after=message.offset - 1)
        return chosen

    yield patch.object(Overflow, "choose", choose)


def counted_for_another() -> Patches:
    """What is sealed for whichever tenant is taken for an event of that in whose lane the record was."""
    honest = Overflow.answered

    def answered(self: Any, message: Any, chosen: Any, outputs: Any) -> None:
        sender = self._stage.sender(outputs)
        said = chosen.tenant if chosen is not None and sender is not None else sender
        with patch.object(self._stage, "sender", lambda _outputs: said):
            honest(self, message, chosen, outputs)

    yield patch.object(Overflow, "answered", answered)
