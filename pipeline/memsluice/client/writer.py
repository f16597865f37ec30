"""The writers that agent platforms use: memory writes, recalls, sessions and observations, operators' commands.

Every method queues one signed event and returns a future: ``.result(timeout)`` gives the :class:`Receipt` once the
broker has it.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import Literal, Self, Unpack

from memsluice.client import arguments, requests
from memsluice.client.local import local
from memsluice.client.options import WriterOptions, options_of
from memsluice.client.publisher import Publisher, Receipt
from memsluice.client.requests import Session, WriteOptions
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError
from memsluice.events.models import Action, Channel, Origin, Returned, Zone


class _Channel(Publisher):
    @classmethod
    def open_local(cls, *, tenant: str, home: Path | None = None, options: WriterOptions | None = None) -> Self:
        """Open the channel on a home's stack with its newest credential for a tenant; the class knows its role.

        ``home`` None: the connection that the environment names, else the stack of ``MEMSLUICE_HOME`` or
        ``~/.memsluice``. Raises ConfigError, which says what to run, where stack or credential are missing,
        InvalidArgument for an argument of another type, and BrokerUnavailable where no broker answers in time.
        """
        return cls._open(cls.roles[0].value, tenant, home, options)

    @classmethod
    def _open(
        cls,
        role: str,
        tenant: str,
        home: Path | None,
        options: WriterOptions | None,
        channel: Channel | None = None,
    ) -> Self:
        arguments.tenant(tenant)
        arguments.home(home)
        fit = [one for one in cls.roles if one.value == role]
        if not fit:
            known = " or ".join(one.value for one in cls.roles)
            raise ConfigError(f"a {cls.__name__} is opened with a credential of role {known}, not {role!r}")
        chosen = options_of(options)
        found = local(fit[0], tenant, home, chosen, channel)
        return cls(found.settings, found.credential, chosen, topic=found.topic)

    def __enter__(self) -> Self:
        return self


class MemoryWriter(_Channel):
    """Publishes memory writes with a producer's or a user channel's credential.

    >>> from memsluice import MemoryWriter, Session
    >>> session = Session(tenant="acme", agent="assistant", principal="ada", session="s-1")
    >>> with MemoryWriter.open_local(tenant="acme") as memory:
    ...     pending = memory.write(session, "Ada prefers tea.", key="drink")
    ...     receipt = pending.result(timeout=10)
    >>> receipt.topic
    'memory.events.v1'

    What the person typed, with a user channel's credential:

    >>> with MemoryWriter.open_local(tenant="acme", role="user_channel") as memory:
    ...     receipt = memory.write(session, "I moved to Lyon.").result(timeout=10)

    Away from a home directory, with settings of librdkafka and a credential's file:

    >>> from memsluice import Connection
    >>> settings = Connection.load().confluent("producer")
    >>> with MemoryWriter(settings, credential_file) as memory:
    ...     receipt = memory.write(session, "Ada moved to Lyon.").result(timeout=10)

    Writes of one session that must keep their place among what the session saw go through an ``AgentSession``.
    """

    roles = (Role.PRODUCER, Role.USER_CHANNEL)

    @classmethod
    def open_local(
        cls,
        *,
        tenant: str,
        role: Literal["producer", "user_channel"] = "producer",
        channel: Channel | None = None,
        home: Path | None = None,
        options: WriterOptions | None = None,
    ) -> Self:
        """As every channel's ``open_local``; ``role`` "user_channel" is for what a person typed.

        ``channel`` asks for a credential of one channel, such as "agent" or "web"; None takes the newest of any.
        """
        return cls._open(role, tenant, home, options, channel)

    def write(
        self,
        session: Session,
        content: str,
        *,
        event_id: str | None = None,
        time: datetime | None = None,
        **options: Unpack[WriteOptions],
    ) -> "Future[Receipt]":
        """Publish a write. Say it again with the same ``event_id`` after a failure: the gate remembers ids.

        Raises MalformedEvent, LimitExceeded, and what :meth:`Publisher.publish` raises.
        """
        return self.publish(requests.write(event_id or self.new_id(), time or self.now(), session, content, options))

    def appeal(self, tenant: str, event_id: str) -> "Future[Receipt]":
        """Ask for a review of a write of this credential that was held. The gate takes one request a write."""
        return self.publish(requests.appeal(self.new_id(), self.now(), tenant, event_id))


class RecallChannel(_Channel):
    """Publishes recalls with a reader's credential. Wait for the receipt before the content is shown."""

    roles = (Role.READER,)

    def recalled(
        self,
        session: Session,
        question: str,
        returned: Sequence[Returned],
        *,
        namespace: str = "default",
        zone: Zone = Zone.GUIDANCE,
        vector: str | None = None,
    ) -> "Future[Receipt]":
        """Publish what a session asked and what it is about to be given."""
        return self.publish(
            requests.recall(
                self.new_id(), self.now(), session, question, returned, namespace=namespace, zone=zone, vector=vector
            )
        )


class RuntimeChannel(_Channel):
    """Publishes sessions and observations with the platform's own credential, which no model holds."""

    roles = (Role.RUNTIME,)

    def open_session(self, session: Session) -> "Future[Receipt]":
        """Say that the platform opened the session and nothing was seen yet; once a session, before anything else."""
        return self.observe(session, Origin.OPEN)

    def observe(
        self, session: Session, origin: Origin, *, digest: str | None = None, content: str | None = None
    ) -> "Future[Receipt]":
        """Say what the session saw, before the model sees it: ``digest`` is 64 hex digits, ``content`` optional."""
        return self.publish(requests.observation(self.new_id(), self.now(), session, origin, digest, content))


class OperatorChannel(_Channel):
    """Publishes commands, signed with Ed25519 by every credential given: the operator's, and the approvers'."""

    roles = (Role.OPERATOR, Role.REVIEWER)

    @classmethod
    def open_local(
        cls,
        *,
        tenant: str,
        role: Literal["operator", "reviewer"] = "operator",
        home: Path | None = None,
        options: WriterOptions | None = None,
    ) -> Self:
        """As every channel's ``open_local``, with one credential; give the constructor several for two signatures."""
        return cls._open(role, tenant, home, options)

    def command(
        self,
        tenant: str,
        action: Action,
        target: str,
        expires_at: datetime,
        *,
        digest: str | None = None,
        reason: str = "",
        parameters: Mapping[str, str] | None = None,
        held: str | None = None,
    ) -> "Future[Receipt]":
        """Publish a command about ``target`` (an event, an object, a policy), bound to ``digest``.

        ``held`` is the sealed write that a release is about: the field ``sealed`` of its quarantine record, as JSON.
        """
        return self.publish(
            requests.command(
                self.new_id(), self.now(), tenant, action, target, expires_at,
                digest=digest, reason=reason, parameters=parameters, held=held,
            )
        )  # fmt: skip
