"""The checker finds every planted violation in an otherwise sound history, and none in the sound one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed
from orjson import dumps as dump_json

from memsluice.envelope.keys import Purpose
from memsluice.envelope.records import stored_from_bytes, stored_to_bytes, verdict_from_bytes, verdict_to_bytes
from memsluice.events.models import Zone
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.records import Record
from memsluice.gate.state.kinds import CHAIN, ENTRY, POSITION, SESSION
from memsluice.gate.state.rows import RowKind, dump
from memsluice.topics import names
from memsluice_lab.chaos.checker import read, refused_violations
from memsluice_lab.chaos.checking import recovery_violations
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.logs import Picture

from .build import NOW_MS, READ, TENANT, UNREAD, History, played


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A sound history."""
    folder: Path = tmp_path_factory.mktemp("chaos")
    return played(folder)


def rules(history: History) -> set[str]:
    """Return the rules that a history breaks."""
    return {one.rule for one in history.violations()}


def again(history: History, topic: str, chosen: Record) -> History:
    """Append a record once more, as a worker does that wakes up late."""
    records = history.picture.of(topic)
    return history.with_topic(topic, [*records, replace(chosen, offset=records[-1].offset + 1)])


def of_row(history: History, kind: RowKind[Any], tenant: str, row_id: str = "") -> list[Record]:
    """Return every version of a row."""
    key = kind.key(tenant, row_id)
    return [record for record in history.picture.of(names.SCREEN_CHANGELOG) if record.key == key]


def test_a_sound_history_has_no_violation(history: History) -> None:
    """What the real stages decide, land and withdraw is what the checker asks for; the history holds every case."""
    assert history.violations() == []
    assert len(history.picture.of(names.AUDIT)) == len(history.said)
    assert sum(history.picture.counts.values()) == len(history.picture.stored) > 0


@pytest.mark.parametrize("topic", [names.SEALED, names.AUDIT, names.ACCEPTED])
def test_a_lost_record_is_noticed(history: History, topic: str) -> None:
    """Whichever record of these topics is missing, whatever was acknowledged and decided lacks it."""
    records = list(history.picture.of(topic))
    for number in range(len(records)):
        assert "lost" in rules(history.with_topic(topic, records[:number] + records[number + 1 :])), number


def test_a_genuine_event_that_is_a_dead_letter_is_noticed(history: History) -> None:
    """Nothing is lost by it for the other rules: only who played the history knows that the sender was honest."""
    place = next(iter(history.said))
    why = dump_json({"topic": place[0], "partition": place[1], "offset": place[2], "reason": "unknown_key"})
    letter = Record(names.DEAD_LETTER, 0, 0, None, b"{}", ((DEAD_LETTER_HEADER, why),))
    dead = history.with_topic(names.DEAD_LETTER, [letter])
    reading = read(dead.picture, dead.keyring, [TENANT])
    assert [one.rule for one in refused_violations(reading, dead.said)] == ["refused"]
    assert list(refused_violations(read(history.picture, history.keyring, [TENANT]), history.said)) == []


def test_a_second_verdict_is_noticed(history: History) -> None:
    """Two verdicts on one event contradict each other, also where both are sealed."""
    first, *_, last = history.picture.of(names.AUDIT)
    other = [replace(first, value=first.value, offset=last.offset + 1)]
    assert rules(history.with_topic(names.AUDIT, [*history.picture.of(names.AUDIT), *other])) == set()  # the same bytes
    verdict = verdict_from_bytes(history.keyring, TENANT, first.value or b"")
    said = replace(verdict, taint=not verdict.taint)
    forged = replace(first, value=verdict_to_bytes(history.keyring, TENANT, said), offset=last.offset + 1)
    assert "doubled" in rules(history.with_topic(names.AUDIT, [*history.picture.of(names.AUDIT), forged]))


@pytest.mark.parametrize("event_id", ["w-5", "w-6"])
def test_a_write_without_its_taint_is_noticed(history: History, event_id: str) -> None:
    """A write in a session that read the web, or was given a tainted entry, before has taint in its verdict, or the
    checker says so."""
    records = list(history.picture.of(names.AUDIT))
    verdicts = [verdict_from_bytes(history.keyring, TENANT, record.value or b"") for record in records]
    (at,) = (number for number, verdict in enumerate(verdicts) if verdict.event_id == event_id)
    assert verdicts[at].taint
    forged = verdict_to_bytes(history.keyring, TENANT, replace(verdicts[at], taint=False))
    records[at] = replace(records[at], value=forged)
    assert "clean" in rules(history.with_topic(names.AUDIT, records))


def with_verdict(history: History, event_id: str, **said: Any) -> History:
    """Return the history with another verdict on an event, sealed as the gate would."""
    records = list(history.picture.of(names.AUDIT))
    for at, record in enumerate(records):
        verdict = verdict_from_bytes(history.keyring, TENANT, record.value or b"")
        if verdict.event_id == event_id:
            forged = verdict_to_bytes(history.keyring, TENANT, replace(verdict, **said))
            records[at] = replace(record, value=forged)
    return history.with_topic(names.AUDIT, records)


def test_a_hole_in_the_audit_is_noticed(history: History) -> None:
    """A link that is missing, that names another before it, or whose bytes are not those that the next one names."""
    records = list(history.picture.of(names.AUDIT))
    for number in range(len(records) - 1):
        assert "chain" in rules(history.with_topic(names.AUDIT, records[:number] + records[number + 1 :])), number
    assert rules(with_verdict(history, "c-1", chain_previous="0" * 64)) == {"chain", "rows"}
    assert rules(with_verdict(history, "w-4", policy="another")) == {"chain"}


def test_a_session_that_is_tainted_after_a_recovery_and_read_nothing_is_noticed(history: History) -> None:
    """It was mixed up with another by whoever restored it; one that read the web is tainted rightly."""
    asked = {"w-4": UNREAD, "w-5": READ}

    def found(history: History) -> list[str]:
        verdicts = read(history.picture, history.keyring, [TENANT]).verdicts
        return [one.rule for one in recovery_violations(verdicts, asked, history.said)]

    assert found(history) == []
    assert found(with_verdict(history, "w-4", taint=True)) == ["recovery"]


@pytest.mark.parametrize("topic", [names.SEALED, names.AUDIT, names.ACCEPTED, names.STORE])
def test_an_unsigned_record_is_noticed(history: History, topic: str) -> None:
    """A record whose bytes were changed is named."""
    first, *rest = history.picture.of(topic)
    value = (first.value or b"").replace(b'"sig":"', b'"sig":"A', 1)
    assert value != first.value
    assert "unsigned" in rules(history.with_topic(topic, [replace(first, value=value), *rest]))


def planted_rows(history: History) -> Sequence[tuple[str, Record]]:
    """Return late rows of a worker that was paused: what each says, and the record."""
    read = of_row(history, SESSION, TENANT, READ.session)
    untainted = SESSION.load(read[0].value or b"")
    assert not untainted.taint
    positions = of_row(history, POSITION, "", names.EVENTS)
    entries = of_row(history, ENTRY, TENANT, "w-1")
    chain = of_row(history, CHAIN, TENANT)
    revoked = ENTRY.load(entries[-1].value or b"")
    return [
        ("a session before it read the web", read[0]),
        ("a position of before", positions[-2]),
        ("an entry before its removal", entries[0]),
        ("an entry that forgot its revocation", replace(entries[-1], value=dump(changed(revoked, revoked="")))),
        ("a link of before", chain[-2]),
    ]


def test_every_late_row_is_noticed(history: History) -> None:
    """A row that goes back, of whatever kind, is found in the log."""
    for said, record in planted_rows(history):
        assert rules(again(history, names.SCREEN_CHANGELOG, record)) == {"rows"}, said


def test_every_late_row_is_noticed_after_compaction(history: History) -> None:
    """The same where compaction left the late row alone: the last rows do not say what was decided."""
    for said, record in planted_rows(history)[:3]:
        kept = {
            one.key: one for one in again(history, names.SCREEN_CHANGELOG, record).picture.of(names.SCREEN_CHANGELOG)
        }
        assert "rows" in rules(history.with_topic(names.SCREEN_CHANGELOG, list(kept.values()))), said


def test_a_late_landing_is_noticed(history: History) -> None:
    """A store record of an older version, or of what was removed, is found behind the newer one, also where compaction
    left it alone."""
    for record in history.picture.of(names.STORE):
        records = again(history, names.STORE, record).picture.of(names.STORE)
        latest = [one for one in history.picture.of(names.STORE) if one.key == record.key][-1] is record
        expected: set[str] = set() if latest else {"store", "lost", "differs"}
        assert rules(history.with_topic(names.STORE, records)) == expected
        kept = list({one.key: one for one in records}.values())
        assert bool(rules(history.with_topic(names.STORE, kept))) is not latest


def test_an_entry_that_is_taken_out_is_noticed(history: History) -> None:
    """Its withdrawal is in the store log and it is gone from the store, as both say; no verdict asked for that. What
    expired may have been withdrawn."""
    picture, records = history.picture, history.picture.of(names.STORE)
    said_of = {name: [one for one in records if (one.key or b"").decode() == name[2]] for name in picture.stored}
    name, record = next((name, said[0]) for name, said in sorted(said_of.items()) if len(said) == 1)
    version = picture.stored[name]
    said = stored_from_bytes(history.keyring, TENANT, record.value or b"")
    assert (said.version, said.withdrawn) == (version, False)
    kid = history.keyring.signing(Purpose.SEAL, NOW_MS).kid

    def taken_out(expires_ms: int | None) -> History:
        gone = replace(said, withdrawn=True, scope="", place=None, expires_ms=expires_ms)
        value = stored_to_bytes(history.keyring, kid, gone)
        late = replace(record, value=value, offset=records[-1].offset + 1)
        stored = {one: number for one, number in picture.stored.items() if one != name}
        counts = {**picture.counts, (TENANT, name[1]): picture.counts[TENANT, name[1]] - 1}
        changed_log = history.with_topic(names.STORE, [*records, late])
        return replace(changed_log, picture=replace(changed_log.picture, stored=stored, counts=counts))

    assert rules(taken_out(None)) == rules(taken_out(NOW_MS + 1)) == {"lost"}
    assert rules(taken_out(NOW_MS)) == set()


def test_the_version_before_a_refused_one_is_asked_for(history: History) -> None:
    """The store does not take an entry's last version: the one before has to lie there, and it is lost where neither
    does."""
    picture, records = history.picture, history.picture.of(names.STORE)
    versions: dict[bytes, list[Record]] = {}
    for record in records:
        versions.setdefault(record.key or b"", []).append(record)
    old, new = next(
        both
        for both in versions.values()
        if len(both) == 2 and not stored_from_bytes(history.keyring, TENANT, both[1].value or b"").withdrawn
    )
    before, after = (stored_from_bytes(history.keyring, TENANT, one.value or b"").version for one in (old, new))
    name = next(one for one in picture.stored if one[2].encode() == old.key)

    def found(gone: Sequence[Record], there: dict[Any, int], refused: bool = True) -> set[str]:
        log = [one for one in records if one not in gone]
        counts = {**picture.counts, (TENANT, name[1]): picture.counts[TENANT, name[1]] + len(there) - 1}
        stored = {**{one: number for one, number in picture.stored.items() if one != name}, **there}
        seen = Picture({**picture.topics, names.STORE: log}, stored, counts)
        reading = read(seen, history.keyring, [TENANT])
        not_taken = {(name, after)} if refused else set()
        return {one.rule for one in store_violations(seen, reading, history.keyring, now_ms=NOW_MS, refused=not_taken)}

    assert found([new], {name: before}) == set()
    assert found([new], {name: before}, refused=False) == {"lost"}
    assert found([old, new], {}) == {"lost"}
    assert found([], {name: after}) == set()  # an operator let it be taken later


def test_a_store_that_differs_from_its_log_is_noticed(history: History) -> None:
    """An object that is missing, of another version, or that nobody asked for."""
    picture = history.picture
    (name, version), *_ = picture.stored.items()
    lacking = {one: number for one, number in picture.stored.items() if one != name}
    counted = {**picture.counts, (TENANT, name[1]): picture.counts[TENANT, name[1]] - 1}
    more = {**picture.counts, (TENANT, Zone.GUIDANCE): picture.counts[TENANT, Zone.GUIDANCE] + 1}
    assert rules(replace(history, picture=replace(picture, stored=lacking, counts=counted))) == {"differs"}
    assert rules(replace(history, picture=replace(picture, stored={**picture.stored, name: version - 1}))) == {
        "differs"
    }
    assert rules(replace(history, picture=replace(picture, counts=more))) == {"differs"}
