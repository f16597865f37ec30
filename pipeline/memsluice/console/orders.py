"""What a browser signed, on its way to the log: held against the registry and the visitor, published, and answered.

The console signs nothing. An envelope goes on as it came, byte for byte, and only where every signature holds, is of a
key that may give this command, and is the visitor's own. The gate verifies all of that once more.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from memsluice.console.serving import Serving
from memsluice.console.visitors import Visitor
from memsluice.envelope import dsse
from memsluice.envelope.registry import check_persons, check_signing_time, credential_of
from memsluice.errors import ClockSkew, CrossTenant, ExpiredKey, MalformedEvent, NotPermitted
from memsluice.events.models import Action, Command, parse_payload
from memsluice.events.names import EVERYBODY, EventType
from memsluice.gate.checks.authenticity import FUTURE_SKEW_MS
from memsluice.gate.commands.dispatch import COMMANDS
from memsluice.operations.commands.answers import Bookmark, heard, verified
from memsluice.operations.commands.desk import CommandDesk
from memsluice.operations.commands.signing import TYPE, Signed
from memsluice.operations.review.decide import Came, came_of
from memsluice.topics.names import PARTITIONS

ENVELOPES_MAX = 100
"""Commands that one request may bring: as many as a plan has entries."""
REMEMBERED_MAX = 10_000
"""Commands whose answers are still asked for here; the answer to an older one is in the entry's history."""


def checked(serving: Serving, visitor: Visitor, data: Any, *, signatures: int | None = None) -> Signed:
    """Return the command of an envelope (from JSON) once the visitor may give it and every signature under it holds.

    ``signatures`` is how many there must be, None: as many as the gate asks for. The last one must be by a key of the
    visitor's. Raises a subclass of InputError, which names the field.
    """
    envelope, now_ms = dsse.parse(data), serving.clock()
    serving.keys.refresh()
    keyring, registry = serving.keys.keyring(), serving.keys.registry()
    command = parse_payload(EventType.COMMAND, dsse.verify(envelope, TYPE, keyring.direct))
    assert isinstance(command, Command)
    kids = [signature.kid for signature in envelope.signatures]
    credentials = [credential_of(kid, keyring, registry) for kid in kids]
    if not visitor.owns(kids[-1], registry):
        raise NotPermitted(f"the key {kids[-1]} is not the one of {visitor.name}", field="signatures")
    if not visitor.sees_tenant(command.tenant):
        raise CrossTenant("you may not decide for this tenant", field="tenant")
    if not visitor.may(command.action):
        raise NotPermitted(f"a {visitor.role.value} may not {command.action.value}", field="action")
    for credential in credentials:
        check_signing_time(keyring.get(credential.kid), now_ms)
        credential.check(EventType.COMMAND, command, now_ms)
        if credential.role is not visitor.role:
            raise NotPermitted("the signatures are of different roles", field="signatures")
    check_persons(kids, keyring, registry)
    wanted = approvals(command.action) if signatures is None else signatures
    if len(kids) != wanted:
        has = f"a {command.action.value} needs {wanted} signatures, and has {len(kids)}"
        raise NotPermitted(has, field="signatures")
    _check_clock(command, now_ms)
    return Signed(command, {name: data[name] for name in ("payload", "payloadType", "signatures")})


def _check_clock(command: Command, now_ms: int) -> None:
    """Refuse what the gate would put among the dead letters for its time: there nobody who signed it hears of it."""
    if int(command.time.timestamp() * 1_000) > now_ms + FUTURE_SKEW_MS:
        ahead = f"more than {FUTURE_SKEW_MS // 60_000} minutes ahead of the console's"
        raise ClockSkew(f"your machine's clock is {ahead}: set it, and decide anew", field="time")
    if int(command.expires_at.timestamp() * 1_000) <= now_ms:
        what = "the command is too old: decide anew, and where that is told at once, set your machine's clock"
        raise ExpiredKey(what, field="expires_at")


def approvals(action: Action) -> int:
    """Return how many people have to sign a command."""
    return COMMANDS[action].approvals


@dataclass(frozen=True, slots=True)
class Published:
    """A command in the log: where it lies, and where its answer will be looked for."""

    command: Command
    place: str
    marks: tuple[Bookmark, ...]


class Remembered:
    """The commands that this server published, whose answers may be asked for; the oldest one is forgotten."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Published] = OrderedDict()
        self._lock = Lock()

    def add(self, published: Sequence[Published]) -> None:
        """Remember commands."""
        with self._lock:
            for one in published:
                self._held[one.command.id] = one
            while len(self._held) > REMEMBERED_MAX:
                self._held.popitem(last=False)

    def find(self, command_id: str, visitor: Visitor) -> Published | None:
        """Return a command that the visitor may ask about."""
        with self._lock:
            found = self._held.get(command_id)
        return found if found is not None and visitor.sees_tenant(found.command.tenant) else None


def remembered(serving: Serving) -> Remembered:
    """Return what a server remembers of what it published."""
    found: Remembered = serving.kept.setdefault("orders", Remembered())
    return found


def publish(serving: Serving, desk: CommandDesk, signed: Sequence[Signed]) -> list[Published]:
    """Put commands into the log, in order. Raises BrokerUnavailable, NotDelivered."""
    marks = {tenant: _marks(desk, tenant) for tenant in dict.fromkeys(one.command.tenant for one in signed)}
    places = desk.publish(signed)
    done = [Published(one.command, place, marks[one.command.tenant]) for one, place in zip(signed, places, strict=True)]
    remembered(serving).add(done)
    return done


def _marks(desk: CommandDesk, tenant: str) -> tuple[Bookmark, ...]:
    if tenant != EVERYBODY:
        return (Bookmark.at(desk.audit, tenant, PARTITIONS),)
    return tuple(Bookmark(number, desk.audit.end(number)) for number in range(PARTITIONS))


def answers(desk: CommandDesk, published: Sequence[Published], wait_s: float) -> list[dict[str, Any]]:
    """Return what the gate made of commands, as JSON values, in order; waits for at most so many seconds.

    Raises BrokerUnavailable.
    """
    since: dict[int, Bookmark] = {}
    for mark in (mark for one in published for mark in one.marks):
        known = since.get(mark.partition)
        since[mark.partition] = mark if known is None or mark.offset < known.offset else known
    told = heard(desk.audit, [one.command for one in published], since.values(), wait_s)
    return [_answer(desk, one, told.get(one.command.id)) for one in published]


def _answer(desk: CommandDesk, one: Published, record: Any) -> dict[str, Any]:
    command = one.command
    said: dict[str, Any] = {
        "id": command.id, "tenant": command.tenant, "target": command.target, "action": command.action.value,
        "offset": command.parameters.get("offset"), "place": one.place,
    }  # fmt: skip
    verdict = None if record is None else verified(desk.keys.keyring(), record)
    came, told = came_of(verdict, texts=False)  # who may ask for an answer may be one who reads no notes
    reasons = [] if verdict is None or came in (Came.DONE, Came.NO_ANSWER) else list(verdict.reasons)
    return {**said, "came": came.value, "told": told, "reasons": reasons}


def envelopes_of(data: Any) -> list[Any]:
    """Return the envelopes of a request. Raises MalformedEvent."""
    found = data.get("envelopes") if isinstance(data, dict) else None
    if not isinstance(found, list) or not 1 <= len(found) <= ENVELOPES_MAX:
        raise MalformedEvent(f"must be a list of 1 to {ENVELOPES_MAX}", field="envelopes")
    return found
