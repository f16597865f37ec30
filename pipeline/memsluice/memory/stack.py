"""A gate on a deployment: Kafka takes the events, the workers decide, Weaviate is read."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Self, TypeVar

from memsluice.client import arguments
from memsluice.client.options import WriterOptions
from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session
from memsluice.client.session import AgentSession
from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.deployment.connection import Connection
from memsluice.events.partition import partition_of
from memsluice.keystore.store import KeyStore
from memsluice.memory.gate import Event, Instructions
from memsluice.memory.hearing import Hearing
from memsluice.memory.waiting import Waiting
from memsluice.recall.recaller import Recaller
from memsluice.topics.names import PARTITIONS

_T = TypeVar("_T")
SESSIONS_MAX = 1_000
"""Sessions whose order is kept; of more the one that was used longest ago is flushed and forgotten."""


class StackGate:
    """See :class:`~memsluice.memory.gate.Gate`. It holds the gate's keys: a platform's process, never an agent's."""

    def __init__(self, tenant: str, home: Path | None, instructions: Instructions | None, opened: ExitStack) -> None:
        options = WriterOptions(linger_ms=0)
        self.tenant = tenant
        self._opened = opened
        connection, keys = Connection.load(home), KeyStore(home)
        self._writer = opened.enter_context(
            MemoryWriter.open_local(tenant=tenant, channel="agent", home=home, options=options)
        )
        self._runtime = opened.enter_context(RuntimeChannel.open_local(tenant=tenant, home=home, options=options))
        self._recalls = opened.enter_context(RecallChannel.open_local(tenant=tenant, home=home, options=options))
        self._recaller = opened.enter_context(Recaller.open_local(tenant=tenant, home=home, instructions=instructions))
        self.waiting = Waiting(tenant, keys.keyring)
        opened.callback(Hearing(connection, [partition_of(tenant, PARTITIONS)], self.waiting.take).close)
        self._sessions: OrderedDict[Session, AgentSession] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def open_local(cls, *, tenant: str, home: Path | None = None, instructions: Instructions | None = None) -> Self:
        """Open a tenant's gate on a home's stack, or on the deployment that the environment names.

        Raises ConfigError, which says what to run, where stack or credentials are missing, InvalidArgument,
        BrokerUnavailable and StoreUnavailable.
        """
        arguments.tenant(tenant)
        arguments.home(home)
        with ExitStack() as opened:
            made = cls(tenant, home, instructions, opened)
            made._opened = opened.pop_all()
        return made

    def publish(self, session: Session, event: Event) -> "Future[Receipt]":
        """Publish in the session's order; what an earlier failure of the broker held back goes first."""
        with self._lock:  # nothing below waits; so no session is closed between being found and being used
            agent, over = self._session(session)
            if agent.failure is not None:
                agent.retry()
            published = agent.publish(event)
        if over is not None:
            over.close()
        return published

    def reading(self, call: Callable[[Recaller], _T]) -> _T:
        """See :class:`~memsluice.memory.gate.Gate`. The recaller is safe for several threads."""
        return call(self._recaller)

    def new_id(self) -> str:
        """Return an event id that was not used."""
        return self._writer.new_id()

    def now(self) -> datetime:
        """Return the time, with a zone."""
        return self._writer.now()

    def close(self) -> None:
        """Flush every session, and leave broker and store."""
        with self._lock:
            left = list(self._sessions.values())
            self._sessions.clear()
        for agent in left:
            agent.close()
        self._opened.close()

    def _session(self, session: Session) -> tuple[AgentSession, AgentSession | None]:
        """Return a session's order, and one that is closed in its favour."""
        agent = self._sessions.get(session)
        if agent is None:
            agent = self._sessions[session] = AgentSession(session, self._writer, self._runtime, self._recalls)
        self._sessions.move_to_end(session)
        return agent, self._sessions.popitem(last=False)[1] if len(self._sessions) > SESSIONS_MAX else None
