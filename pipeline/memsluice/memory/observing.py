"""What tools returned is outside content, and is observed before a model is shown it: one rule for every framework."""

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from hashlib import sha256

from memsluice.client.requests import Session
from memsluice.events.models import Origin
from memsluice.memory.memory import Memory

RECENT_MAX = 10_000
"""Names that are known; an item whose name was forgotten is observed once more."""


class Observing:
    """Observes tools' results. Every tool's is outside content unless its name is in ``trusted``: those whose results
    nobody outside can write, such as a calculator, or the tools that read the gated memory itself. A name is all that
    is known of a tool: let no server of others have one of these. ``origins`` says of a tool by name what it reads
    (``Origin.WEB`` of a browser); of others it is ``Origin.TOOL``.
    """

    def __init__(self, trusted: Collection[str] = (), origins: Mapping[str, Origin] | None = None) -> None:
        self._trusted = frozenset(trusted)
        self._origins = dict(origins or {})

    def saw(self, memory: Memory, tool: str, content: str | None) -> None:
        """Publish that the session saw what a tool returned, and return once the log has that.

        ``content`` is None where it is no text. Raises ProducerError: then show the model nothing of it.
        """
        if tool not in self._trusted:
            memory.observe(self._origins.get(tool, Origin.TOOL), content=content)

    async def asaw(self, memory: Memory, tool: str, content: str | None) -> None:
        """As :meth:`saw`, in a worker thread."""
        await asyncio.to_thread(self.saw, memory, tool, content)


def name_of(session: Session, *parts: str | None) -> str:
    """Return a name for something of a session's, however long it is: 64 hex digits."""
    return sha256(json.dumps([*session.fields().values(), *parts]).encode()).hexdigest()


class Recent:
    """What was put in last, by name: which items of a conversation were observed, where a framework shows all of them
    at every turn, and the like. Bounded, and safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, str] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def put(self, name: str, value: str = "") -> None:
        """Take note of a name; of an item, once the log has its observation."""
        with self._lock:
            self._known[name] = value
            self._known.move_to_end(name)
            if len(self._known) > RECENT_MAX:
                self._known.popitem(last=False)

    def get(self, name: str) -> str | None:
        """Return what was put in under a name, None where nothing was."""
        return self._known.get(name)
