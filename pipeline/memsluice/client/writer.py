"""The writers that agent platforms use: memory writes, recalls, sessions and observations, operators' commands.

Every method queues one signed event and returns a future: ``.result(timeout)`` gives the :class:`Receipt` once the
broker has it.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Self, Unpack

from memsluice.client import requests
from memsluice.client.publisher import Publisher, Receipt
from memsluice.client.requests import Session, WriteOptions
from memsluice.events.models import Action, Origin, Returned, Zone


class _Channel(Publisher):
    def __enter__(self) -> Self:
        return self


class MemoryWriter(_Channel):
    """Publishes memory writes with a producer's or a user channel's credential.

    >>> with MemoryWriter(connection.confluent("producer"), "credentials/producer-1f2e3d4c.json") as memory:
    ...     pending = memory.write(Session("acme", "assistant", "ada", "s-1"), "Ada prefers tea")
    ...     receipt = pending.result(timeout=10)
    """

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
