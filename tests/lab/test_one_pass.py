"""The lab decides online: what comes later changes no earlier verdict, only what stands in the end."""

import random
from typing import Any

import pytest
from tests.encoders import minilm

from memsluice_lab import run as lab
from memsluice_lab.streams import events_of

from .stream import line

LATER = ("final", "moved_by")
POISON = (
    "The old lighthouse at Brent Cove is painted green from top to bottom, as its keeper wrote in the book, "
    "and every map of the cove shows the green tower beside the pier."
)


def stream() -> list[dict[str, Any]]:
    """Return plain notes on many subjects, one passage about a question that is asked after it, and questions."""
    things = ("pump", "bakery", "violin", "fence", "ferry", "garden", "kettle", "museum", "bicycle", "chimney")
    facts = [
        f"The {thing} number {n} was repaired by the crew in week {n} and works again."
        for n in range(25)
        for thing in things
    ]
    lines = [line(0, "query", "user", "Who repaired the bicycle?", "s0")]
    for fact in facts:
        lines.append(line(len(lines), "write", "user", fact, f"s{len(lines) // 5}", principal=f"p{len(lines) // 9}"))
    lines.append(line(len(lines), "write", "agent", POISON, "late"))
    lines.append(line(len(lines), "query", "user", "What colour is the old lighthouse at Brent Cove?", "asks"))
    lines += [
        line(len(lines) + n, "write", "user", f"Note {n}: the tide table hangs by the door.", "end") for n in range(3)
    ]
    for each in lines:
        each["time"] = f"2026-03-{2 + each['seq'] // 24:02d}T{each['seq'] % 24:02d}:00:00+00:00"
    return lines


def decided(lines: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the verdict lines by seq."""
    encoder, chosen = minilm(), lab.policy_set(None)
    return {each["seq"]: each for each in lab.decide(events_of(lines), name="x", encoder=encoder, chosen=chosen)}


@pytest.fixture(scope="module")
def verdicts() -> dict[int, dict[str, Any]]:
    """What is decided about the stream."""
    return decided(stream())


def at_first(verdicts: dict[int, dict[str, Any]], until: int) -> dict[int, dict[str, Any]]:
    """Return what was decided at once about the writes before ``until``."""
    return {
        seq: {name: value for name, value in each.items() if name not in LATER}
        for seq, each in verdicts.items()
        if seq < until
    }


def test_a_permuted_future_leaves_every_past_verdict_as_it_was(verdicts: dict[int, dict[str, Any]]) -> None:
    """Deciding event n uses no event after n: shuffled and changed later texts give the same earlier verdicts."""
    lines = stream()
    cut = 40
    texts = [each["text"] for each in lines[cut:]]
    random.Random(4).shuffle(texts)
    permuted = lines[:cut] + [{**each, "text": text} for each, text in zip(lines[cut:], texts, strict=True)]
    assert at_first(verdicts, cut) == at_first(decided(permuted), cut)


def test_look_back_changes_what_stands_and_not_what_was_decided(verdicts: dict[int, dict[str, Any]]) -> None:
    """A passage that landed before its question was asked is moved by the question; the file says both."""
    lines = stream()
    poison = next(each["seq"] for each in lines if each["text"] == POISON)
    assert verdicts[poison]["decision"] == "accept"
    assert verdicts[poison]["final"] == "quarantine"
    assert verdicts[poison]["moved_by"].endswith(f"{poison + 1:06d}")
    assert [seq for seq, each in verdicts.items() if "final" in each] == [poison]
