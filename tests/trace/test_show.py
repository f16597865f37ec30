"""What a person reads of a life: complete, and nothing in it acts on the terminal or misleads."""

import io
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from tests.gate.build import RING, T0, axis
from tests.trace.audit import SOON_MS, Gate, collect, life_of

from memsluice.cli.render.life import render
from memsluice.envelope.seals import close
from memsluice.envelope.verdict import NEEDED
from memsluice.events.names import VERDICT, EventType
from memsluice.gate.policy.model import CalibrationPolicy, default
from memsluice.gate.reasons import words
from memsluice.operations.trace.collector import Collector
from memsluice.operations.trace.life import Life
from memsluice.recall.show import moment

HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
ATTACKS = {
    "escape": "\x1b[2J\x1b]0;owned\x07",
    "bidi": "ana\u202enimda",
    "zero width": "a\u200bn\u200da\ufeff",
    "8 KiB without a space": "x" * 8_192,
    "emoji": "👩‍👩‍👧 \U000e0041",
    "markup": "[bold red]held[/] [link=http://evil]click[/link]",
    "lines": "ana\nnow         admitted to guidance\r",
}


def shown(found: Collector, ancestors: Any = None, width: int = 200) -> str:
    """Return the lives that were collected as they are printed."""
    return shown_lives(found.lives(), ancestors or {}, width)


def shown_lives(lives: list[Life], ancestors: Any, width: int = 200) -> str:
    """Return lives as they are printed, on a terminal that understands everything."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, highlight=False)
    for life in lives:
        console.print(render(life, SOON_MS, words, ancestors))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


def value(text: str, label: str) -> str:
    """Return what stands beside a label, the lines that go on with it included."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"{label} "))
    more = []
    for line in lines[first + 1 :]:
        if not line.startswith("      "):
            break
        more.append(line.strip())
    return " ".join([lines[first].removeprefix(label).strip(), *more])


def scored(cosines: tuple[float, ...] = (0.1, 0.15, 0.2, 0.25)) -> Gate:
    """Return a gate whose window is full of writes at these cosines, and whose last write stands out of it.

    It is the paper's own window: the guarantee is told of that alone.
    """
    policy = default().default
    fixed = CalibrationPolicy(strategy="fixed")
    memsad = policy.memsad.model_copy(update={"reference_size": len(cosines), "calibration": fixed})
    small = policy.model_copy(update={"detector": "memsad", "memsad": memsad})
    gate = Gate(small)
    gate.see("reader", EventType.RECALL, question="Which train?", vector=axis(0))
    for number, cosine in enumerate(cosines):
        gate.write(vector=axis(10 + number, 0, cosine))
    gate.write(id="near", vector=axis(40, 0, 0.9))
    return gate


def test_a_score_that_is_judged_by_ranks_tells_its_p_value() -> None:
    """The conformal strategy has no threshold: the score is said with how rare it is, and not that there is none."""
    policy = default().default
    ranks = CalibrationPolicy(strategy="conformal")
    memsad = policy.memsad.model_copy(update={"reference_size": 4, "calibration": ranks})
    gate = Gate(policy.model_copy(update={"detector": "memsad", "memsad": memsad}))
    gate.see("reader", EventType.RECALL, question="Which train?", vector=axis(0))
    gate.write(id="near", vector=axis(40, 0, 0.9))
    text = shown(collect(gate, "near"))
    assert value(text, "score").startswith("0.9000, p below 0.0001: the share of usual writes that score as high")
    assert "calibration conformal" in value(text, "window")


def test_a_held_write_tells_rule_numbers_window_and_keys() -> None:
    """At three in the morning: which rule, how far from the threshold, on what window, under which keys and policy."""
    gate = scored()
    text = shown(collect(gate, "near"))
    assert value(text, "now") == "held for review, in memory.quarantine.v1"
    assert value(text, "because") == "memsad.above_threshold: its similarity to past questions is above the threshold"
    score = value(text, "score")  # of 0.10, 0.15, 0.20, 0.25 by hand: 0.175, 0.0645, 0.3041; rows keep twelve bits
    assert re.match(r"0\.9000, above the threshold 0\.304\d \(combined score, calibrated window\)", score)
    assert "0.063 ···[──μ──]···│······························●··· 0.947" in score
    assert re.search(r"μ 0\.175\d  σ 0\.064\d  κ 2$", score)
    told = value(text, "window")
    assert told.startswith("number 1: 4 reference entries against the last 1 questions, calibration fixed")
    assert re.search(r"less than 0\.59[56]\d is decided alike$", told)
    assert "population's" not in text  # no bound: four reference entries are too few for its proof
    assert value(text, "signed by").startswith("key-user a user_channel on channel user, tier 3 observed")
    assert value(text, "policy").startswith("default@")
    assert "sealed by seal-1" in value(text, "screen")
    assert value(text, "land") == f"nothing; kept in memory.quarantine.v1[{gate.audit[0].partition}] for a reviewer"


def test_what_the_paper_guarantees_is_told_where_it_does() -> None:
    """N = 18: mean .2, sigma^ .1029, eta .1763 and radius .3821 (see test_memsad_variants); the gap is .9 - .3."""
    told = value(shown(collect(scored((0.1, 0.3) * 9), "near")), "guarantee")
    assert re.match(r"the threshold is within 0\.176\d of the population's", told)
    assert re.search(r"gap to the reference 0\.(599|600)", told)
    assert "above the certified radius 0.38" in told


def test_an_accepted_write_tells_who_when_and_where() -> None:
    """Every clock with its distance, every stage with the place of its record, and how long the entry holds."""
    gate = Gate()
    gate.write(append_ms=T0 + 900, time="2026-05-28T20:26:40.250+00:00")
    text = shown(collect(gate, "e0"))
    assert value(text, "now").startswith(
        "admitted to guidance (what agents may follow), seen by principal, expires in "
    )
    assert value(text, "principal") == "ana"
    assert value(text, "occurred") == "2026-05-28 20:26:40.250 UTC, as its producer says"
    assert value(text, "appended") == "2026-05-28 20:26:40.900 UTC (+650 ms), by the broker's clock"
    assert value(text, "decided").startswith("2026-05-28 20:26:40.900 UTC")
    assert "version 0 of object" in value(text, "land")
    assert value(text, "score") == "none, cold window: no recall was made before it"
    assert "record 1" not in text


def test_a_tainted_write_names_what_tainted_it_and_what_that_was() -> None:
    """The ancestor's own decision stands beside it, where the audit has it."""
    gate = Gate()
    gate.see("runtime", EventType.OBSERVATION, origin="open")
    gate.see("runtime", EventType.OBSERVATION, origin="web")
    gate.write("agent", parents=["lost"])
    text = shown(collect(gate, "e2"), {("acme", "e1"): life_of(gate, "e1")})
    assert value(text, "now").startswith("admitted to external (kept as data, never as guidance)")
    told = value(text, "taint")
    assert told.startswith(
        "declared parent that is no known entry: lost its session observed a web page: e1 that observation was"
    )
    assert told.endswith("signed by key-runtime")


def test_every_record_is_listed_where_there_are_several() -> None:
    """Re-deliveries, replays, other contents and contradictions are told apart in words."""
    gate = Gate()
    gate.write(id="note")
    gate.again(0)
    gate.write(id="note", content="Something else.")
    gate.forged(0, decision="reject")
    text = shown(collect(gate, "note"))
    assert value(text, "record 1").endswith("delivered 2 times, the same bytes; 1 OTHER VERDICTS for the same offset")
    assert "another event under the same id; quarantine, duplicates.other_content" in value(text, "record 2")


@pytest.mark.parametrize("attack", sorted(ATTACKS))
@pytest.mark.parametrize("field", ["principal", "agent", "session", "kid", "model", "policy", "mode", "type"])
def test_nothing_that_is_shown_acts_on_the_terminal(attack: str, field: str) -> None:
    """Escape sequences, bidi, zero width, one endless word, markup, line breaks: spelled out, cut, never obeyed."""
    gate = Gate()
    gate.write()
    gate.forged(0, **{field: ATTACKS[attack], "event_id": "e9"})
    text = shown(collect(gate, "e9"), width=80)
    assert {unicodedata.category(character) for character in text if character != "\n"}.isdisjoint(HIDDEN)
    assert text.count("\nnow  ") == 1
    assert len(text) < 6_000
    if attack == "markup":
        assert "[bold red]held[/]" in text


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.lists(st.text(max_size=60), max_size=4))
def test_whatever_a_verdict_says_the_terminal_is_safe(text: str, causes: list[str]) -> None:
    """Any text in any place that could carry one: reasons, findings, causes, keys."""
    gate = Gate()
    gate.write()
    found = [{"code": text, "decision": text, "detail": {text: text, "names": causes}}]
    changed = {"reasons": [text], "findings": found, "taint": True, "taint_causes": causes, "approvers": causes}
    gate.forged(0, **changed, event_id="e9", seal_kid=text, role=text, channel=text)
    printed = shown(collect(gate, "e9"), width=100)
    assert {unicodedata.category(character) for character in printed if character != "\n"}.isdisjoint(HIDDEN)


def test_an_early_verdict_is_shown_without_what_it_lacks() -> None:
    """A record of an earlier version is a page all the same."""
    gate = Gate()
    gate.write()
    early = {name: value for name, value in gate.verdict(0).items() if name in NEEDED}
    gate.audit.clear()
    gate.put(b"acme", close(RING, "seal-1", "acme", VERDICT, early), ())
    text = shown(collect(gate, "e0"))
    assert "now " in text
    assert "occurred" not in text


def test_an_order_is_named_where_it_placed_the_entry() -> None:
    """Who ordered it, under which id, and what it came to."""
    gate = Gate()
    gate.write()
    order = {"type": EventType.COMMAND, "event_id": "o1", "target": "e0", "action": "reject", "approvers": ["key-r"]}
    gate.forged(0, decision="record", object_id=None, offset=7, **order)
    text = shown(collect(gate, "e0"))
    assert value(text, "now") == "refused for good, by command o1"
    assert value(text, "record 2").endswith("a command about it, reject (o1), by key-r; record")
    assert value(shown(collect(gate, "o1")), "action") == "reject e0"


def test_times_beyond_the_calendar_are_numbers() -> None:
    """A clock that no calendar has does not break the page."""
    assert moment(T0 + 7) == "2026-05-28 20:26:40.007 UTC"
    assert moment(10**18) == f"{10**18} ms"
