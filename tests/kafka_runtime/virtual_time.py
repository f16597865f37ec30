"""An event loop whose clock moves only when nothing else can happen: nothing waits, and nothing is late, however slow
the machine is. For scenes without threads and sockets."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: the clock is set to what is due next instead."""

    now_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; where nothing is, let the time pass that the loop would wait."""
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing can happen any more: the scene hangs"
            self.now_s += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the time of this loop."""
        return self._jumping.now_s


def run(scene: Coroutine[Any, Any, Any], within_s: float = 30.0) -> Any:
    """Play a scene to its end. Raises TimeoutError where that takes more of the loop's own seconds."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(asyncio.wait_for(scene, within_s))
