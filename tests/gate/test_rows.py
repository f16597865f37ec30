"""State rows: one type a kind reads and writes them, also those that an older version wrote."""

from hashlib import sha256

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.build import MemoryRows

from memsluice.envelope.codec import canonical
from memsluice.envelope.verdict import Decision
from memsluice.errors import StateError
from memsluice.events.models import Tier, Zone
from memsluice.gate.state import kinds
from memsluice.gate.state.kinds import ENTRY, SESSION, VALUES, EntryRow, Gone, SessionRow
from memsluice.gate.state.rows import RowKind, TenantRows, dump, expires_ms, row_key

KINDS = {name: kind for name, kind in vars(kinds).items() if isinstance(kind, RowKind)}
ROW = {
    "tier": 3, "taint": False, "landed": True, "decision": "accept", "object": "o", "zone": "guidance", "version": 7,
    "topic": "memory.events.v1", "offset": 6, "digest": "d", "content": "c", "keyed": False, "causes": [], "x": None,
}  # fmt: skip
HELD = {
    "topic": "t", "offset": 1, "digest": "d", "content": "c", "vector": "v", "principal": "ana", "kid": "k",
    "held_ms": 5, "tier": 3, "taint": True, "causes": ["a"], "codes": ["rates.exceeded"], "state": "held", "by": "",
    "x": 9,
}  # fmt: skip
NARROW = {"turn": ["b"], "turn_worst": 4, "hard": True, "seen": 1, "revoked": "r"}
KNOWN = {
    "agent": "a", "principal": "p", "opened": True, "taint": True, "worst": 4, "causes": ["b"], "narrow": NARROW,
    "x": 3,
}  # fmt: skip
WAS = {"was": ["o", 7], "ms": 1}
EXAMPLES = [
    ("DRIFT", {"s": 1.5, "n": 2, "x": 5}),
    ("CLAIM", {"s": [["o", "e1", 7, "p"]], "x": 5}),
    ("RELATION", {"m": [["o", "e1", 7, "p"]], "x": 5}),
    ("NODE", {"b": "p", "l": ["p", "q"], "x": 5}),
    ("LINKS", {"n": {"1": 2}, "x": 5}),
    ("INNER", {"n": {"1": 2}, "x": 5}),
    ("EVENT", {"topic": "t", "offset": 1, "digest": "d", "x": 5}),
    ("ENTRY", ROW),
    ("ENTRY", {**ROW, "x": 5, "parents": ["p"], "lifted": "l", "revoked": None, "promoted": "q", "was": ["o", 6]}),
    ("ENTRY", {**ROW, "zone": None, "object": None, "landed": False, "decision": "quarantine", "gone": WAS,
               "looked": {"by": "r", "taint": False, "decision": "accept"}, "revoked": "x", "lifted": None}),
    ("ENTRY", {**ROW, "gone": None, "looked": None, "reviewed": "r"}),
    ("ENTRY", {name: value for name, value in ROW.items() if name not in ("content", "keyed")}),
    ("REVIEW", HELD),
    ("REVIEW", {**HELD, "appeal": "a", "revoked": None, "lifted": "l"}),
    ("REVIEW", {**HELD, "weighed": {"detect": {"part": "d", "score": 1.5, "threshold": 1.5, "p": 0.01},
                                    "instructions": {"part": "e"}}, "shown": ["r1", "r2"]}),
    ("REVIEW", {**HELD, "state": "refused"}),
    ("HOLDER", {"event": "e", "offset": 1, "x": None}),
    ("PROTECTED", {"by": "c"}),
    ("PROTECTED", {"by": "c", "key": "shared\x1f\x1fdefault\x1fSOUL.md"}),
    ("SESSION", KNOWN),
    ("SEEN", {"words": "w", "cause": "web:o", "tier": 5, "x": 1}),
    ("RATE", {"n": {"494444": 3}, "x": 1}),
    ("HELD", {"n": {}, "x": 1}),
    ("REFUSED", {"n": {"1": 2}, "x": 1}),
    ("ALL_REFUSED", {"n": {"1": 2}, "x": 1}),
    ("LOOKED", {"n": {"1": 1}, "x": 1}),
    ("LYING", {"n": 2, "x": None}),
    ("POSITION", {"offset": 3, "clock_ms": 4}),
    ("CHAIN", {"seq": 1, "digest": "d"}),
    ("POLICY", {"text": "{}", "by": "c"}),
    ("QUESTION", {"id": "r", "p": "t", "s": ["u"], "t": "AA==", "v": "BB=="}),
    ("LANDED", {"id": "e", "t": "AA==", "v": "BB==", "k": False, "p": ""}),
    ("VALUES", [-12_345, 0, 1]),
    ("HABIT", {"f": "010", "p": ["t"]}),
    ("FLOOR", {"q": 1, "e": 2}),
    ("FLOOR", {"q": 1, "e": 2, "t": 3}),
    ("ENCODER", {"model": "acme/small@1", "dimensions": 96, "turn": 3}),
    ("DETECT_CALIBRATION", {"v": [0.0, 1.5], "t": "aa bb", "h": [[3, "cc", 1.25]], "n": 3, "a": None, "r": ""}),
    ("ASKED", {"n": 4, "v": "AA==", "e": ""}),
    ("ASKED", {"n": 4, "v": "AA=="}),
    ("ASKED", {"n": 4, "v": "AA==", "t": 3}),
    ("REFERENCE", {"n": 4, "c": "AA=="}),
    ("MEMSAD_CALIBRATION", {"v": [], "t": "", "h": [], "n": 0, "a": 0.01, "r": ""}),
    ("LEXICAL", {"b": "AA==", "n": 1, "d": [0.5]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), EXAMPLES)
def test_a_row_comes_back_as_the_very_bytes_that_were_read(name: str, value: object) -> None:
    """What is absent stays absent, and a null stays one: an unchanged row written again is the same row."""
    data = canonical(value)
    assert dump(KINDS[name].load(data)) == data


def test_every_kind_has_an_example() -> None:
    """A kind that is added is written above in JSON, as it lies on disk."""
    assert {name for name, _ in EXAMPLES} == set(KINDS)


def test_no_two_kinds_meet_under_one_key() -> None:
    """Kinds that share a name have ids that begin differently."""
    assert len({(kind.name, kind.prefix) for kind in KINDS.values()}) == len(KINDS)
    assert all((kind.name in ("detect", "graph", "memsad")) == bool(kind.prefix) for kind in KINDS.values())


def test_a_session_that_is_older_than_narrower_watermarks_has_the_whole_one() -> None:
    """All that a session saw counts as seen in this turn, and as seen otherwise than by words that are kept."""
    old = SESSION.load(canonical({name: value for name, value in KNOWN.items() if name != "narrow"}))
    assert old.narrower == SESSION.load(canonical({**KNOWN, "narrow": {**NARROW, "seen": 0, "revoked": ""}})).narrow
    young = SESSION.load(canonical({**KNOWN, "narrow": {"turn": [], "turn_worst": 0, "hard": False}}))
    assert (young.narrower.seen, young.narrower.revoked) == (0, "")


def test_values_as_they_were_written_before_they_had_to_be_short() -> None:
    """Six named numbers are read as well as six whole ones."""
    named = VALUES.load(canonical(dict.fromkeys("cqrwug", 0.5)))
    assert not isinstance(named, tuple)
    assert named.g == 0.5


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", canonical({**ROW, "tier": "3"}), canonical({**ROW, "tier": 9})])
def test_a_row_that_cannot_be_read_stops_the_worker(data: bytes) -> None:
    """Damaged, of another form, or of a tier that there is not: StateError, which says the kind and no content."""
    with pytest.raises(StateError, match="entry"):
        ENTRY.load(data)


@pytest.mark.parametrize("kind", ["entry", "event", "v"])
def test_when_any_row_expires(kind: str) -> None:
    """Whoever sweeps asks no row for more than its end; what is no object, or has none, stays."""
    data = {"entry": {**ROW, "x": 8}, "event": {"topic": "t", "offset": 1, "digest": "d", "x": 8}, "v": [1, 2]}[kind]
    assert expires_ms(canonical(data)) == (None if kind == "v" else 8)
    assert expires_ms(canonical(ROW)) is None
    with pytest.raises(StateError):
        expires_ms(b'{"x":')


def test_rows_are_frozen_and_so_are_views_of_them() -> None:
    """Nobody changes a row in place: a changed one is put, and the view it was read from stays as it was."""
    rows = TenantRows(MemoryRows(), "acme", 5)
    row = EntryRow(tier=Tier.OPERATOR, taint=False, landed=True, decision=Decision.ACCEPT, object_id="o",
                   zone=Zone.GUIDANCE, version=1, topic="t", offset=0, digest="d", causes=(), expires_ms=6)  # fmt: skip
    rows.put(ENTRY, "e", row)
    fork = rows.fork()
    fork.put(ENTRY, "e", msgspec.structs.replace(row, gone=Gone(("o", 1), 5)))
    assert rows.get(ENTRY, "e") == row
    with pytest.raises(AttributeError):
        row.taint = True  # type: ignore[misc]
    later = TenantRows(MemoryRows({ENTRY.key("acme", "e"): dump(row)}), "acme", 6)
    assert later.get(ENTRY, "e") is None
    assert later.get(ENTRY, "e", late_ms=1) == row


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e15, 1e15), st.text(max_size=20))
VALUE = st.recursive(LEAVES, lambda some: st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=5), some))


@given(VALUE)
def test_rows_are_canonical(value: object) -> None:
    """Rows have the bytes that everything signed has: sorted keys, no spaces, the same for the same value."""
    assert dump(value) == canonical(value)
    assert dump(orjson.loads(canonical(value))) == canonical(value)


def test_an_id_that_is_too_long_for_a_key_is_kept_by_its_digest() -> None:
    """Behind a control character, which no name may contain: never taken for an id of that very text."""
    assert row_key("acme", "entry", "e" * 256) == b"acme\0entry\0" + b"e" * 256
    assert row_key("acme", "entry", "e" * 257) == b"acme\0entry\0\x1e" + sha256(b"e" * 257).hexdigest().encode()


def test_a_session_of_whom_nothing_is_known_has_no_end() -> None:
    """What is absent in a row is the least that it could be."""
    bare = SESSION.load(canonical({"agent": "planner", "principal": "ana", "x": 0}))
    assert bare == SessionRow(agent="planner", principal="ana")
    assert (bare.expires_ms, bare.worst, bare.taint, bare.opened) == (0, 0, False, False)
