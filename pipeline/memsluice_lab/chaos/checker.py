"""What must hold of a deployment, whatever happened to it, of what was acknowledged and what can be read. Pure.

Every rule names itself, so that a test can plant its violation and ask for it by name:

``lost``: an acknowledged event has no sealed record, or no verdict and no dead letter; an object that a verdict asked
for is not there, or was taken out though nobody asked for that. ``refused``: a genuine event became a dead letter.
``doubled``: two verdicts on one event, two contents under one version, an object nobody asked for. ``unsigned``: a
record whose seal does not hold. ``clean``: an agent's write in a session that read the web or a tainted entry before
has no taint, or a tainted one lands as guidance. ``chain``: the audit has a hole. ``rows``: a row of the changelog went
back (:mod:`.rows`). ``store``: the store log went back, or what was removed is in it again. ``differs``: the store is
not what its log says, once *land*'s sweep had its time (:mod:`.landed`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import Accepted, held_from_bytes, landing_from_bytes, verdict_from_bytes
from memsluice.envelope.seals import sealed_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import InputError, SealError
from memsluice.events.models import AnyPayload, Observation, Origin, Recall, Write, Zone
from memsluice.events.records import Record
from memsluice.topics import names
from memsluice_lab.chaos.following import dead_place
from memsluice_lab.chaos.logs import Picture
from memsluice_lab.figures.bed import Place

Said = Mapping[Place, AnyPayload]
"""What the broker acknowledged, by where it put it."""


class Violation(NamedTuple):
    """One promise that was broken."""

    rule: str
    what: str


@dataclass(slots=True)
class Reading:
    """The picture with every seal checked: sealed places, verdicts and their bytes, what was asked of the store."""

    sealed: set[Place] = field(default_factory=set)
    dead: set[Place] = field(default_factory=set)
    verdicts: dict[Place, Verdict] = field(default_factory=dict)
    audited: dict[Place, bytes] = field(default_factory=dict)
    accepted: dict[tuple[str, str, int, bool], bytes] = field(default_factory=dict)
    """Tenant, object id, version and whether it is a withdrawal."""
    violations: list[Violation] = field(default_factory=list)


def read(picture: Picture, keyring: Keyring, tenants: Sequence[str] | None = None) -> Reading:
    """Open every sealed record, of these tenants or (None) of all; what does not hold is a violation."""
    reading, mine = Reading(), None if tenants is None else {tenant.encode() for tenant in tenants}
    for topic, take in (
        (names.SEALED, _sealed),
        (names.AUDIT, _audited),
        (names.ACCEPTED, _accepted),
        (names.QUARANTINE, _held),
    ):
        for record in picture.of(topic):
            if mine is None or record.key in mine:
                try:
                    take(record, keyring, reading)
                except (SealError, InputError) as error:
                    reading.violations.append(Violation("unsigned", f"{_where(record)}: {error}"))
    for record in picture.of(names.DEAD_LETTER):
        if (place := dead_place(record)) is not None:
            reading.dead.add(place)
    return reading


def _sealed(record: Record, keyring: Keyring, reading: Reading) -> None:
    position = sealed_from_bytes(keyring, _tenant(record), record.value or b"").position
    reading.sealed.add((position.topic, position.partition, position.offset))


def _audited(record: Record, keyring: Keyring, reading: Reading) -> None:
    value = record.value or b""
    verdict = verdict_from_bytes(keyring, _tenant(record), value)
    if reading.audited.setdefault(verdict.intake, value) != value:
        reading.violations.append(Violation("doubled", f"{verdict.intake} has two verdicts"))
    reading.verdicts.setdefault(verdict.intake, verdict)


def _accepted(record: Record, keyring: Keyring, reading: Reading) -> None:
    value, tenant = record.value or b"", _tenant(record)
    landing = landing_from_bytes(keyring, tenant, value)
    out = not isinstance(landing, Accepted)
    said = landing.admission if isinstance(landing, Accepted) else landing
    name = (tenant, said.object_id, said.version, out)
    if reading.accepted.setdefault(name, value) != value:
        reading.violations.append(Violation("doubled", f"{_where(record)}: another record of {name}"))


def _held(record: Record, keyring: Keyring, reading: Reading) -> None:
    held_from_bytes(keyring, _tenant(record), record.value or b"")


def verdict_violations(reading: Reading, said: Said) -> Iterator[Violation]:
    """Yield what is wrong with the answers to what was acknowledged."""
    yield from reading.violations
    for place in said:
        if place not in reading.sealed and place not in reading.dead:
            yield Violation("lost", f"{place} was never sealed")
        elif place not in reading.verdicts and place not in reading.dead:
            yield Violation("lost", f"{place} has no verdict")
    yield from _unasked(reading)
    yield from _clean(reading, said)
    yield from _chained(reading)


def refused_violations(reading: Reading, said: Said) -> Iterator[Violation]:
    """Yield the genuine events that became dead letters. Not among the answers above: a credential may be revoked, or a
    clock be wrong, and only who plays the history knows whether one was."""
    for place in said:
        if place in reading.dead:
            yield Violation("refused", f"{place} was signed by who it says, and is a dead letter")


def _unasked(reading: Reading) -> Iterator[Violation]:
    asked: set[tuple[str, str, int, bool]] = set()
    for verdict in reading.verdicts.values():
        if verdict.object_id is not None:
            asked.add((verdict.tenant, verdict.object_id, verdict.sealed_offset, False))
        asked |= {(verdict.tenant, one.object_id, verdict.sealed_offset, True) for one in verdict.withdraws}
    for name in reading.accepted.keys() - asked:
        yield Violation("doubled", f"accepted without a verdict: {name}")
    for name in asked - reading.accepted.keys():
        yield Violation("lost", f"decided and not accepted: {name}")


def tainted_since(said: Said) -> dict[tuple[str, str], int]:
    """Return from which offset of the intake on each session (tenant, id) has read something, in the world or in
    memory."""
    since: dict[tuple[str, str], int] = {}
    for (_topic, _partition, offset), payload in said.items():
        if (isinstance(payload, Observation) and payload.origin is not Origin.OPEN) or (
            isinstance(payload, Recall)
            and (any(one.taint for one in payload.returned) or (payload.returned and payload.zone is Zone.EXTERNAL))
        ):
            name = (payload.tenant, payload.session)
            since[name] = min(offset, since.get(name, offset))
    return since


def _clean(reading: Reading, said: Said) -> Iterator[Violation]:
    since = tainted_since(said)
    for place, payload in said.items():
        verdict = reading.verdicts.get(place)
        if not isinstance(payload, Write) or verdict is None:
            continue
        read_before = place[2] > since.get((payload.tenant, payload.session), place[2])
        if (
            read_before and verdict.channel == "agent" and not verdict.taint
        ):  # what others say is judged by who they are
            yield Violation("clean", f"{place}: {verdict.decision} in a session that read the web, without taint")
        if verdict.taint and verdict.zone is Zone.GUIDANCE:
            yield Violation("clean", f"{place}: tainted and guidance")


def _chained(reading: Reading) -> Iterator[Violation]:
    tenants: dict[str, list[tuple[int, str, bytes]]] = {}
    for place, verdict in reading.verdicts.items():
        link = (verdict.chain_seq, verdict.chain_previous, reading.audited[place])
        tenants.setdefault(verdict.tenant, []).append(link)
    for tenant, links in tenants.items():
        links.sort(key=lambda link: link[0])
        if (first := links[0])[:2] != (1, ""):
            yield Violation("chain", f"{tenant}: begins with link {first[0]}, which names {first[1]!r} before it")
        for (number, _, value), (following, previous, _next) in pairwise(links):
            if following != number + 1 or previous != sha256(value).hexdigest():
                yield Violation("chain", f"{tenant}: link {following} does not follow {number}")


def _tenant(record: Record) -> str:
    return (record.key or b"").decode()


def _where(record: Record) -> str:
    return f"{record.topic}[{record.partition}]@{record.offset}"
