"""The payloads behind the writers' methods: one place where arguments become events, for sync and asyncio alike.

Each takes the event's ``id`` and ``time`` from the caller and raises MalformedEvent or LimitExceeded, which name the
field and quote no content; InvalidArgument where an argument is unknown, or no session, sequence or mapping.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

from memsluice.client import arguments
from memsluice.client.build import make
from memsluice.errors import InvalidArgument
from memsluice.events.models import (
    Action,
    Command,
    Kind,
    Observation,
    Origin,
    Recall,
    Returned,
    Tier,
    Visibility,
    Write,
    Zone,
)

APPEAL_VALID = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Session:
    """Whose session an event belongs to: tenant, agent, principal (the person) and session id."""

    tenant: str
    agent: str
    principal: str
    session: str

    def fields(self) -> dict[str, str]:
        """Return the four fields by name."""
        return {
            "tenant": self.tenant,
            "agent": self.agent,
            "principal": self.principal,
            "session": self.session,
        }


class WriteOptions(TypedDict, total=False):
    """What a write may say besides its content; the defaults are those of :class:`memsluice.events.models.Write`.

    >>> from memsluice import Kind, MemoryWriter, Session, Tier, Visibility
    >>> session = Session(tenant="acme", agent="assistant", principal="ada", session="s-1")
    >>> memory = MemoryWriter.open_local(tenant="acme")

    A fact that replaces what was remembered under the same key, for all of the tenant's agents:

    >>> first = memory.write(session, "Invoices go out as PDF.", key="invoices", visibility=Visibility.SHARED)

    What was made from another write and from a page says so; it may claim less trust than its credential has:

    >>> note = memory.write(
    ...     session, "The mill is cheapest.", parents=[first.result(timeout=10).event_id], origin="web",
    ...     claimed_tier=Tier.EXTERNAL_WEB,
    ... )

    Extracted facts, a line each, in a namespace of their own:

    >>> facts = memory.write(session, "ada | prefers | tea", kind=Kind.FACTS, namespace="profile")
    >>> memory.close()
    >>> [pending.result().topic for pending in (note, facts)]
    ['memory.events.v1', 'memory.events.v1']
    """

    namespace: str
    """A part of the tenant's memory: a recall asks one. Default "default"."""
    key: str | None
    """A later write of the same scope and key replaces the entry. Default None: the entry stands for itself."""
    visibility: Visibility | str
    """Who is shown it: the session, its principal (the default), or everybody of the tenant."""
    kind: Kind | str
    """Text, or facts of the form ``subject | relation | object``, a line each."""
    parents: Sequence[str]
    """Event ids of what it was made from."""
    origin: str | None
    """Where it is from, for the audit."""
    claimed_tier: Tier | int | None
    """A trust lower than the credential's; a higher one is ignored."""


def write(event_id: str, time: datetime, session: Session, content: str, options: WriteOptions) -> Write:
    """Return the payload of a write."""
    return make(Write, id=event_id, time=time, content=content, **_fields(session), **_listed(options))


def recall(
    event_id: str,
    time: datetime,
    session: Session,
    question: str,
    returned: Sequence[Returned],
    *,
    namespace: str = "default",
    zone: Zone = Zone.GUIDANCE,
    vector: str | None = None,
) -> Recall:
    """Return the payload of a recall; ``vector`` is base64 of little-endian float16."""
    return make(
        Recall, id=event_id, time=time, question=question, namespace=namespace, zone=zone, vector=vector,
        returned=arguments.several("returned", returned, "Returned"), **_fields(session),
    )  # fmt: skip


def observation(
    event_id: str, time: datetime, session: Session, origin: Origin, digest: str | None, content: str | None
) -> Observation:
    """Return the payload of an observation; ``digest`` is 64 hex digits."""
    return make(Observation, id=event_id, time=time, origin=origin, digest=digest, content=content, **_fields(session))


def command(
    event_id: str,
    time: datetime,
    tenant: str,
    action: Action,
    target: str,
    expires_at: datetime,
    *,
    digest: str | None = None,
    reason: str = "",
    parameters: Mapping[str, str] | None = None,
    held: str | None = None,
    policy: str | None = None,
) -> Command:
    """Return the payload of a command: ``held`` is the sealed write of a release, ``policy`` an activation's text."""
    arguments.instance("parameters", parameters, (Mapping, type(None)), "a mapping of strings, or None")
    return make(
        Command, id=event_id, time=time, tenant=tenant, action=action, target=target, expires_at=expires_at,
        digest=digest, reason=reason, parameters=dict(parameters or {}), held=held, policy=policy,
    )  # fmt: skip


def appeal(event_id: str, time: datetime, tenant: str, target: str) -> Command:
    """Return the payload of a request to review a held write, ``target``; it is void after a day."""
    return command(event_id, time, tenant, Action.APPEAL, target, time + APPEAL_VALID)


def _listed(options: WriteOptions) -> dict[str, Any]:
    unknown = options.keys() - WriteOptions.__optional_keys__
    if unknown:
        known = ", ".join(("event_id", "time", *WriteOptions.__annotations__))
        raise InvalidArgument(f"write() has no argument {arguments.shown(min(unknown))}: it takes content, {known}")
    fields: dict[str, Any] = dict(options)
    if "parents" in fields:
        fields["parents"] = arguments.several("parents", fields["parents"], "event ids")
    return fields


def session_only(session: Session) -> None:
    """Raise InvalidArgument for what is no session, such as the name of a tenant."""
    arguments.instance("session", session, Session, "a Session(tenant=..., agent=..., principal=..., session=...)")


def _fields(session: Session) -> dict[str, str]:
    session_only(session)
    return session.fields()
