"""The golden test: everything that is sent and stored, byte for byte as it was when the fixture was recorded.

Recorded by the tree before a change, played by the tree after it. Vectors are of quarters (:class:`.ring.WordEncoder`),
so that no CPU rounds their products; what the detectors compute from texts beside them is rounded by the gate before it
is compared or kept.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.record import (
    FILE,
    TOWN,
    WALKS,
    Middle,
    Played,
    continue_town,
    differences,
    play_town,
    play_walk,
    read,
)
from tests.golden.town import CHANGELOG, Taped

from memsluice.gate.reasons import WORDS
from memsluice.topics import names

KINDS = {
    "all_refused", "chain", "detect", "drift", "entry", "event", "graph", "held", "holder", "looked", "lying", "memsad",
    "policy", "position", "protected", "rate", "refused", "review", "seen", "session",
}  # fmt: skip
"""Every kind of state row."""
PARTS = {"detect": set("qevhcb"), "graph": set("crnli"), "memsad": set("qrsc")}
"""What rows of these kinds begin their ids with."""
TOPICS = {
    CHANGELOG, names.EVENTS, names.COMMANDS, names.SEALED, names.ACCEPTED, names.STORE, names.QUARANTINE, names.AUDIT,
    names.DEAD_LETTER,
}  # fmt: skip
NOT_PLAYED = {
    "screening.failed": "no text of ours is known on which screening fails: tests/gate/test_screening.py breaks it",
    "authenticity": "the base class of other codes; nothing raises it itself",
    "encoder.carried": "the schedule has one encoder",
    "encoder.changed": "the schedule has one encoder",
    "notes.full": "it takes a hundred notes: tests/gate/test_notes.py lowers the bound",
    "memsad.no_probes": "the schedule has one encoder, and says that it is the default one",
    "not_intake": "said by the command that replays dead letters, never by the gate",
    "unreadable": "no text is known on which our own reading fails",
    "store_refused": "no store refuses an object that the gate admitted",
}
"""Codes that have words and come of no schedule, and why not."""


@pytest.fixture(scope="module")
def recorded() -> tuple[dict[str, Played], Middle]:
    """What the fixture says."""
    return read(FILE.read_bytes())


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Middle, list[Taped]]:
    """The hand-written schedule, played by this tree."""
    return play_town(tmp_path_factory.mktemp("golden"))


def told(lines: Iterable[str]) -> str:
    """Return a failure's message."""
    return "\n".join(("what is sent or stored has changed:", *lines))


def test_what_the_town_sends_and_stores_is_what_it_was(recorded, town) -> None:
    """Intake, sealed, accepted, store, quarantine, audit and dead-letter records with keys and headers, the changelog
    in its order, and every state row, of a schedule that meets every reason code: unchanged to the last byte."""
    found = differences(TOWN, recorded[0][TOWN], town[0])
    assert not found, told(found)


@pytest.mark.parametrize("name", sorted(WALKS))
def test_what_a_random_walk_sends_and_stores_is_what_it_was(recorded, name: str) -> None:
    """The same of random commands, crashes and re-deliveries through *screen*: unchanged to the last byte."""
    found = differences(name, recorded[0][name], play_walk(name))
    assert not found, told(found)


def test_a_state_of_the_recorded_tree_is_carried_on(recorded, town, tmp_path: Path) -> None:
    """A worker of this tree starts with the rows that the recorded tree wrote, is sent what came after them, and sends
    and stores the same bytes as the one that wrote them: an upgrade in mid-stream changes nothing."""
    played, middle = recorded[0][TOWN], recorded[1]
    found = continue_town(tmp_path, middle.state, town[2][middle.came :])
    rest = {topic: some[middle.sent.get(topic, 0) :] for topic, some in played.sent.items()}
    lines = differences(TOWN, replace(played, sent=rest), found)
    assert not lines, told(lines)


def test_the_schedules_meet_everything_that_there_is(town) -> None:
    """Every topic, kind of row and reason code comes of the schedules, so that none can change unseen; what they leave
    out is named with its reason."""
    played, middle, _ = town
    rows = {*played.rows, *(f"{part}:{key.decode()}" for part, key, _ in middle.state.rows)}
    ids = [key.split(":", 1)[1].split("\0") for key in rows]
    assert {kind for _, kind, *_ in ids} == KINDS
    assert {kind: {rest[0][0] for _, one, *rest in ids if one == kind} for kind in PARTS} == PARTS
    assert {topic for topic, some in played.sent.items() if some} == TOPICS
    missing = WORDS.keys() - played.codes
    assert missing == NOT_PLAYED.keys(), f"not in the schedule any more: {sorted(missing - NOT_PLAYED.keys())}"


def test_a_difference_is_named() -> None:
    """Whoever broke something is told which record of which topic it is, and which row, not that two sums differ."""
    labels: Mapping[str, list[str]] = {"audit": ["acme/e1: accept []", "acme/e2: reject ['rates.exceeded']"]}
    was = Played({"audit": ["a", "b"], "store": ["c"]}, {"1:acme\0entry\0e1": "x", "1:acme\0entry\0e2": "y"})
    now = Played({"audit": ["a", "B"], "store": []}, {"1:acme\0entry\0e1": "x", "1:acme\0entry\0e3": "y"}, labels)
    assert differences("town", was, was) == []
    lines = differences("town", was, now)
    assert Counter(line.split(" ")[1] for line in lines) == {"audit:": 1, "store:": 1, "2": 1}
    assert "record 1 differs, now acme/e2: reject ['rates.exceeded']" in lines[0]
    assert "record 0 differs, now nothing" in lines[1]
    assert "the first, '1:acme\\x00entry\\x00e2', is gone" in lines[2]
