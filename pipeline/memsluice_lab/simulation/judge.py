"""What must hold when a history is over: the rules of the chaos harness, and those that only a simulator can ask.

``lost``, ``doubled``, ``unsigned``, ``clean``, ``chain``, ``rows`` and ``store`` are :mod:`memsluice_lab.chaos`'s own
rules, asked of all that was ever committed and again of what compaction leaves. Besides: ``forged`` (what nobody signed
was decided), ``alone`` (a tenant's verdicts, decided anew from empty state with nobody else's events there, are
others), ``refused`` (a genuine event became a dead letter, though no credential was revoked and no clock set),
``mended`` (the store differs from its log after it was mended), ``shut out`` (processes take their partitions from one
another, over and over) and ``overtaken`` (processes begin anew though no key was issued).
"""

import base64
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import orjson

from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.records import Accepted, landing_from_bytes
from memsluice.envelope.seals import Position, Sealed, Waited, admission_verify_outside, sealed_to_bytes
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import Fenced, Overtaken, SealError
from memsluice.events.models import Action, AnyPayload, Write, Zone
from memsluice.events.records import Record
from memsluice.stages.screen import ScreenStage
from memsluice.topics import names
from memsluice_lab.chaos.checker import Reading, Violation, read, refused_violations, verdict_violations
from memsluice_lab.chaos.following import dead_place
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.logs import TOPICS, Object, Picture
from memsluice_lab.chaos.rows import row_violations
from memsluice_lab.model.production import DictRows
from memsluice_lab.simulation.history import History, Place
from memsluice_lab.simulation.world import PARTITIONS, TENANTS, partition

SIGNED_ANEW: Final = ("seal_kid", "admission_kid", "chain_previous")
"""Fields of a verdict that name keys: a later decision of the same record signs with those of its own day."""
LANDS_OR_WAITS: Final = (Decision.ACCEPT, Decision.CONTAIN, Decision.QUARANTINE)
DOUBTFUL: Final = frozenset({"revoke_credential", "clock"})
"""Faults after which the gate may refuse a genuine event."""
FENCED_MAX: Final = 10
"""Processes that may end in a history because another one has their partition: as many as its faults account for."""
SHOWN_MAX: Final = 12


def violations(history: History, *, alone: bool) -> list[str]:
    """Return what was broken. ``alone``: decide every tenant's events anew, which costs as much as the history did."""
    found = list(history.told.violations)
    if any(one.startswith("stuck") for one in found):
        return found
    keyring = history.world.keyring()
    reading = _reading(history, keyring)
    lists = [
        verdict_violations(reading, _bound(history, reading)),
        _lost(history, reading),
        _refused(history, reading),
        _mislaid(history, reading),
        _forged(history, reading),
        _ordered(history, reading),
        _mended(history, keyring),
        _shut_out(history),
        _logs(history, reading, keyring),
    ]
    if alone:
        lists.append(_alone(history, reading, keyring))
    for one in chain.from_iterable(lists):
        found.append(f"{one.rule}: {one.what}")
        if len(found) >= SHOWN_MAX:
            break
    return found


def _bound(history: History, reading: Reading) -> dict[Place, AnyPayload]:
    """Return what was acknowledged but for writes that neither land nor wait: no zone is chosen for them."""
    return {
        place: payload
        for place, payload in (history.said | history.mislaid).items()
        if not isinstance(payload, Write)
        or ((verdict := reading.verdicts.get(place)) is not None and verdict.decision in LANDS_OR_WAITS)
    }


def _lost(history: History, reading: Reading) -> Iterator[Violation]:
    for place, payload in history.said.items():
        if isinstance(payload, Write) and place not in reading.dead and place not in reading.verdicts:
            yield Violation("lost", f"{place} has neither verdict nor dead letter")


def _reading(history: History, keyring: Keyring) -> Reading:
    """Return all that lies in the log, read as on the real broker, and whoever it names."""
    return read(Picture({topic: _records(history, topic) for topic in TOPICS}), keyring)


def _records(history: History, topic: str) -> list[Record]:
    return [record for log in history.broker.logs(topic) for record in log.read()]


def _marker(record: Record) -> Sealed:
    """Return a marker that stands at the place of a sealed record."""
    said = orjson.loads(base64.b64decode(orjson.loads(record.value or b"")["payload"]))
    late = said.get("waited")
    waited = None if late is None else Waited(**late)
    return Sealed(position=Position(**said["position"]), type="marker", marker_reason="another's", waited=waited)


def _ordered(history: History, reading: Reading) -> Iterator[Violation]:
    """Yield the events of a tenant that were decided before one that lies before them, also where some of them waited
    in the overflow. What lies under another tenant's key is not in its tenant's order."""
    last: dict[tuple[str, int], int] = {}
    for verdict in sorted(reading.verdicts.values(), key=lambda one: (one.tenant, one.chain_seq)):
        topic, partition, offset = verdict.intake
        if topic != names.EVENTS or verdict.intake in history.mislaid:
            continue
        before = last.get((verdict.tenant, partition), -1)
        if offset < before:
            yield Violation("order", f"{verdict.tenant}: {offset} of {partition} was decided after {before}")
        last[verdict.tenant, partition] = offset


def _tenant(record: Record) -> str:
    return (record.key or b"").decode()


def _refused(history: History, reading: Reading) -> Iterator[Violation]:
    """Yield genuine events that became dead letters, where no credential was revoked and no clock was wrong."""
    if not DOUBTFUL & set(history.plan.fired):
        yield from refused_violations(reading, history.said)


def _not_taken(history: History, keyring: Keyring) -> set[tuple[Object, int]]:
    """Return the objects and versions of which *land* wrote a dead letter and which the store once did not take."""
    found = set()
    for log in history.broker.logs(names.DEAD_LETTER):
        for record in log.read():
            place = dead_place(record)
            if place is not None and place[0] == names.ACCEPTED:
                landing = landing_from_bytes(keyring, _tenant(record), record.value or b"")
                asked = landing.admission if isinstance(landing, Accepted) else landing
                name = (asked.tenant, Zone(asked.zone), asked.object_id)
                if (*name, asked.version) in history.staging.not_taken:
                    found.add((name, asked.version))
    return found


def _mislaid(history: History, reading: Reading) -> Iterator[Violation]:
    """Yield what was published under another tenant's key and did not become both: a dead letter, and what its session
    saw. That the session is tainted for it, the harness' rules ask."""
    for place, payload in history.mislaid.items():
        verdict = reading.verdicts.get(place)
        said = None if verdict is None else (verdict.tenant, verdict.decision)
        if place not in reading.dead or said != (payload.tenant, Decision.REJECT):
            yield Violation("lost", f"{place}, under another's key, has no dead letter, or the verdict {said}")


def _forged(history: History, reading: Reading) -> Iterator[Violation]:
    for place in history.forged:
        if place in reading.verdicts:
            yield Violation("forged", f"{place} was decided: {reading.verdicts[place].decision}")
        elif place not in reading.dead:
            yield Violation("lost", f"{place} has no dead letter")


def _mended(history: History, keyring: Keyring) -> Iterator[Violation]:
    """Yield what differs after the sweep, and what lies there unsigned."""
    for what in history.before_mending:
        yield Violation("store", f"before anything was mended: {what}")
    for what in history.staging.differences():
        yield Violation("mended", what)
    for item in (item for held in history.store.partitions.values() for item in held.values()):
        try:
            admission_verify_outside(keyring, item.tenant, orjson.loads(item.admission))
        except (SealError, orjson.JSONDecodeError) as error:
            yield Violation("unsigned", f"{item.object_id} in the store: {error}")


def _shut_out(history: History) -> Iterator[Violation]:
    ended = history.told.counts[f"ended: {Fenced.__name__}"]
    if ended > FENCED_MAX:
        yield Violation("shut out", f"{ended} processes ended because another one had their partition")
    overtaken = history.told.counts[f"ended: {Overtaken.__name__}"]
    if overtaken > history.plan.fired.count("revoke_credential"):
        yield Violation("overtaken", f"{overtaken} processes began anew for an event that was taken for nobody's")


def _logs(history: History, reading: Reading, keyring: Keyring) -> Iterator[Violation]:
    """Yield what the changelog and the store log say wrongly, of all that was said and of what compaction leaves."""
    yield from _rules(history, reading, keyring, "", whole=True)
    for topic in (names.SCREEN_CHANGELOG, names.STORE):
        for log in history.broker.logs(topic):
            log.compact()
    yield from _rules(history, reading, keyring, "after compaction: ", whole=False)


def _rules(history: History, reading: Reading, keyring: Keyring, when: str, *, whole: bool) -> Iterator[Violation]:
    def records(topic: str) -> list[Record]:
        logs = history.broker.logs(topic)
        return [record for log in logs for record in (log.ever() if whole else log.read())]

    stored = {
        (tenant, zone, one): item.version
        for (tenant, zone), held in history.store.partitions.items()
        for one, item in held.items()
    }
    counts = {(tenant, zone): history.store.count(tenant, zone) for tenant in TENANTS for zone in Zone}
    picture = Picture({names.STORE: records(names.STORE)}, stored, counts)
    now_ms, refused = history.now_ms("land"), _not_taken(history, keyring)
    found = chain(
        _rows(history, reading, records(names.SCREEN_CHANGELOG)),
        store_violations(picture, reading, keyring, now_ms=now_ms, refused=refused),
    )
    for one in found:
        yield Violation(one.rule, f"{when}{one.what}")


def _rows(history: History, reading: Reading, changelog: list[Record]) -> Iterator[Violation]:
    """Yield what rows say wrongly. A declassification lifts a label that a revocation took: nobody else may."""
    lifted = [
        f"{verdict.tenant} entry {verdict.target}: its revocation is gone"
        for verdict in reading.verdicts.values()
        if verdict.action == Action.DECLASSIFY and verdict.decision is not Decision.REJECT
    ]
    for one in row_violations(changelog, history.said, reading):
        if not any(one.what.endswith(what) for what in lifted):
            yield one


def _alone(history: History, reading: Reading, keyring: Keyring) -> Iterator[Violation]:
    """Decide each tenant's sealed records anew, from empty state, with markers in the place of everybody else's."""
    kid = keyring.signing(Purpose.SEAL, history.now_ms("screen")).kid
    for tenant in TENANTS:
        stage, rows = _judging(history, keyring), DictRows()
        for record in history.broker.log(names.SEALED, partition(tenant)).read():
            if record.key != tenant.encode():
                value = sealed_to_bytes(keyring, kid, _marker(record))
                record = Record(  # noqa: PLW2901 - a marker in its place
                    record.topic, record.partition, record.offset, b"", value, (), record.timestamp_ms,
                )  # fmt: skip
            step = stage.process(record, rows)
            rows.change((change.key, change.value) for change in step.changes)
            if step.verdict is not None and (what := _differs(step.verdict, reading)):
                yield Violation("alone", f"{tenant}, {step.verdict.intake}: {what}")
                break


def _judging(history: History, keyring: Keyring) -> ScreenStage:
    now_ms = history.now_ms("screen")
    return ScreenStage(lambda: keyring, lambda _tenant: history.world.policy, PARTITIONS, lambda: now_ms)


def _differs(anew: Verdict, reading: Reading) -> str:
    was = reading.verdicts.get(anew.intake)
    if was is None:
        return "no verdict before"
    before, after = _comparable(was), _comparable(anew)
    other = sorted(name for name in after if before.get(name) != after[name])
    return "" if not other else ", ".join(f"{name} {before.get(name)!r} became {after[name]!r}" for name in other)[:300]


def _comparable(verdict: Verdict) -> dict[str, Any]:
    return {name: value for name, value in verdict.to_json().items() if name not in SIGNED_ANEW}
