"""The stream as it runs: what is counted, once; what is bounded; and what is shown of it."""

import io
import unicodedata
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.live import Live
from tests.envelope.made import made, score
from tests.gate.build import RING, T0, axis
from tests.stores.build import STRANGER
from tests.trace.audit import Gate
from tests.trace.test_life import PATTERN

from memsluice.cli.render.pulse import MORE, as_data, render
from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.partition_orders import PartitionState
from memsluice.envelope.records import verdict_from_bytes, verdict_to_bytes
from memsluice.events.names import EventType
from memsluice.gate.reasons import words
from memsluice.operations.monitor.lag import Lag
from memsluice.operations.monitor.pulse import (
    BUCKET_MS,
    BUCKETS,
    HELD_MAX,
    KEYS_MAX,
    OTHER,
    Pulse,
    Recent,
    Snapshot,
    _add,
)

MINUTE_MS = 60_000


def pulse_of(gate: Gate, tenants_max: int = 1_000) -> Pulse:
    """Return a pulse that took the whole audit topic."""
    pulse = Pulse(lambda: RING, tenants_max)
    for record in gate.audit:
        pulse.take(record)
    return pulse


def drawn(seen: Snapshot, lags: list[Lag] | None = None, tenants_max: int = 20, later_ms: int = 0) -> str:
    """Return a picture as it is printed on a narrow terminal."""
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None, highlight=False)
    console.print(render(seen, lags or [], "the broker", "1d ago", words, tenants_max, seen.now_ms + later_ms))
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


@pytest.mark.parametrize(("height", "kept"), [(60, ("verdict ", "why ")), (24, ("verdict ",)), (14, ())])
def test_a_low_screen_keeps_the_tenants(height: int, kept: tuple[str, ...]) -> None:
    """Nobody scrolls in the live view: reasons, then verdicts give way to who it is, and that there is more is said."""
    console = Console(file=io.StringIO(), width=80, height=height, force_terminal=True, color_system=None)
    lags = [Lag(stage, 0, 0, 0, True) for stage in ("seal", "screen", "land")]
    with Live(console=console, screen=True, auto_refresh=False) as live:
        live.update(render(pulse_of(a_day()).snapshot(0), lags, "the broker", "1d ago", words, 20, 0), refresh=True)
    shown = console.file.getvalue().split("\x1b[H")[-1]  # type: ignore[attr-defined]
    assert [name for name in ("verdict ", "why ") if f"\n{name}" in shown] == list(kept)
    assert ("acme" in shown, MORE in shown) == (True, len(kept) < 2)
    assert len(shown.splitlines()) <= height


def test_parked_partitions_are_named_before_anything_else() -> None:
    """Their tenants' numbers look quiet and well, and are those of a partition that stands still."""
    parked = [PartitionState(stage, 3, True, "f", "GapError", "", "t", 1, None, 0, "0") for stage in ("land", "seal")]
    seen = pulse_of(a_day()).snapshot(0)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(render(seen, [], "the broker", "1d ago", words, 20, 0, parked))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "parked   2 stand still until a person says how to go on: land 3, seal 3" in shown
    assert "memsluice partition status" in shown
    assert as_data(seen, [], "x", 20, parked)["parked"][1] == {"stage": "seal", "partition": 3}
    assert "parked" not in drawn(seen)


def test_how_long_a_write_waits_goes_by_the_clock_and_not_by_the_latest_record() -> None:
    """A reviewer who comes hours after the last event reads the age that `memsluice quarantine stats` tells."""
    gate = a_day()
    seen = pulse_of(gate).snapshot(0)
    assert seen.held_since_ms is not None
    shown = drawn(replace(seen, now_ms=seen.held_since_ms), later_ms=7 * 60 * MINUTE_MS)
    assert "wait for a reviewer, the oldest for 7 h, by this machine's clock" in shown


def test_a_view_that_outlasts_a_rotation_verifies_what_the_new_key_signed() -> None:
    """`memsluice top` runs for days; genuine verdicts called unverifiable would look like a forger."""
    gate, keyring = a_day(), [Keyring(key for key in RING if key.purpose is not Purpose.SEAL)]
    pulse = Pulse(lambda: keyring[0])
    pulse.take(gate.audit[0])
    assert (pulse.read, pulse.unverified) == (1, 1)
    keyring[0] = RING
    pulse.take(gate.audit[1])
    assert (pulse.read, pulse.unverified) == (2, 1)


def test_what_an_alert_is_about_has_its_key_and_its_tenant() -> None:
    """A runbook ends at a name: the reader of an unverified read, the writer of the operator tier, who drifts."""
    gate = a_day()
    returned = {"object_id": f"{0:036d}", "version": 0, "event_id": "nobody", "tier": 3, "taint": False}
    gate.see("reader", EventType.RECALL, question="Which?", vector=axis(0), returned=[returned, returned])
    gate.write("operator")
    seen = pulse_of(gate).snapshot(0)
    assert (list(seen.unverified_reads), list(seen.operator_writes)) == ([("key-reader", 2)], [("key-operator", 1)])
    shown = drawn(replace(seen, drifts=[("acme", 3.25), ("b", 2.0), ("c", 1.0), ("d", 1.0), ("e", 0.9)]))
    assert "reads    2 returned, never admitted: 2 by key-reader" in shown
    assert "operator 1 writes with the operator tier: 1 by key-operator" in shown
    assert "drift    scores moved by 3.2 standard deviations within a window: acme" in shown
    assert shown.count("drift ") == 3
    quiet = drawn(pulse_of(a_day()).snapshot(0))
    assert not any(line.startswith(("reads ", "operator ", "drift ")) for line in quiet.splitlines())


def test_a_tenant_whose_scores_moved_is_named() -> None:
    """The pulse goes by the same rule as the metric."""
    pulse = pulse_of(a_day())
    before = score(mu=0.2, sigma=0.1, window_id=50, window_size=50)
    for moved in (before, replace(before, mu=0.5, window_id=100)):
        pulse._count(pulse._tenant("moved"), made(type="x", object_id="x", score=moved), 1)
    ((name, shift),) = pulse.snapshot(0).drifts
    assert (name, round(shift, 6)) == ("moved", 3.0)


def test_keys_are_named_up_to_a_bound() -> None:
    """Whoever makes many keys can't make the view grow."""
    counts: Counter[str] = Counter()
    for number in range(KEYS_MAX + 5):
        _add(counts, f"key-{number}", 1)
    assert (len(counts), counts[OTHER]) == (KEYS_MAX + 1, 5)


def a_day() -> Gate:
    """Return a gate that saw a question, an accepted write, a page's write, a held one and a replay."""
    gate = Gate()
    gate.see("reader", EventType.RECALL, question="Which train?", vector=axis(0))
    gate.write(id="note", time="2026-05-28T20:26:40+00:00")
    gate.write("web")
    gate.write(id="bad", content=PATTERN)
    gate.write(id="note", time="2026-05-28T20:26:40+00:00")
    return gate


def test_verdicts_are_counted_by_decision_reason_and_tenant() -> None:
    """Everything that was decided is in the picture, with the calibration that the last scored write had."""
    seen = pulse_of(a_day()).snapshot(T0 + 10_000)
    assert seen.decisions == {"record": 1, "accept": 1, "contain": 1, "quarantine": 1, "duplicate": 1}
    assert (seen.events, seen.per_s, seen.wait_ms) == (5, 5 / 60, (5, 5))
    assert dict(seen.reasons)["wording.held"] == 1
    (tenant,) = seen.tenants
    assert (tenant.name, tenant.phase, tenant.window_size, tenant.history_size) == ("acme", "cold", 1, 1)


def test_what_was_sent_again_counts_once() -> None:
    """Verdicts that a gate of before sent again raise no rate and no share."""
    gate = Gate()
    for _ in range(3):
        gate.write()
    for number in range(3):
        gate.again(number)
    seen = pulse_of(gate).snapshot(T0)
    assert (seen.events, seen.redelivered, seen.decisions) == (3, 3, {"accept": 3})


def test_what_waited_in_the_overflow_counts_though_it_lies_before_what_was_decided() -> None:
    """A tenant over its quota is decided late: that is no restart, and what a restart sends again of it counts once."""
    gate = Gate()
    for _ in range(4):
        gate.write()
    pulse = pulse_of(gate)
    for number, record in enumerate((*gate.audit[:2], *gate.audit[:2])):
        verdict = verdict_from_bytes(RING, "acme", record.value or b"")
        late = replace(
            verdict, waited=True, event_id=f"late-{verdict.offset}", decided_ms=verdict.decided_ms + MINUTE_MS
        )
        pulse.take(replace(record, offset=10 + number, value=verdict_to_bytes(RING, "acme", late)))
    seen = pulse.snapshot(T0)
    assert (seen.events, seen.redelivered) == (6, 2)


def test_a_held_write_waits_until_an_order_about_its_content_is_carried_out() -> None:
    """Its age is told; a refused order, or one about another content, ends nothing."""
    gate = a_day()
    pulse = pulse_of(gate)
    assert (pulse.snapshot(T0 + MINUTE_MS).held, pulse.snapshot(T0).held_since_ms) == (1, T0 + 3_000)
    digest = gate.verdict(3)["content_digest"]
    order = {"type": EventType.COMMAND, "target": "bad", "action": "release", "object_id": "o"}
    for number, changed in enumerate(
        ({"content_digest": "other", "decision": "accept"}, {"content_digest": digest, "decision": "reject"})
    ):
        gate.forged(3, event_id=f"o{number}", offset=10 + number, **order | changed)
    assert pulse_of(gate).snapshot(T0).held == 1
    gate.forged(3, event_id="o9", offset=19, **order | {"content_digest": digest, "decision": "accept"})
    assert pulse_of(gate).snapshot(T0).held_since_ms is None


def test_a_replay_that_holds_again_holds_no_more() -> None:
    """The number of held decisions is that of held writes, however often somebody replays them."""
    gate = a_day()
    command = {"type": EventType.COMMAND, "target": "bad", "action": "replay", "decision": "quarantine"}
    gate.forged(3, event_id="again", offset=20, **command)
    seen = pulse_of(gate).snapshot(T0)
    assert (seen.decisions["quarantine"], seen.decisions["record"], seen.held) == (1, 2, 1)


def test_two_held_writes_of_one_id_and_content_both_wait() -> None:
    """The same content under the same id in another session is held beside: an order about one leaves the other."""
    gate = Gate()
    for session in ("s1", "s2"):
        gate.write(id="bad", content=PATTERN, session=session)
    assert pulse_of(gate).snapshot(T0).held == 2
    gate.see(
        "reviewer", EventType.COMMAND, action="reject", target="bad", digest=gate.verdict(0)["content_digest"],
        parameters={"offset": "1"}, expires_at="2030-01-01T00:00:00Z",
    )  # fmt: skip
    seen = pulse_of(gate).snapshot(T0)
    assert (seen.held, seen.held_since_ms) == (1, T0)


def test_what_the_gate_did_not_sign_says_nothing() -> None:
    """A forged verdict, and bytes that are none, are counted as broken."""
    gate = Gate()
    gate.write()
    gate.forged(0, ring=STRANGER, offset=1)
    gate.put(b"acme", b"nonsense", ())
    seen = pulse_of(gate).snapshot(T0)
    assert (seen.events, seen.unverified, seen.read) == (1, 2, 3)


def test_a_minute_later_nothing_is_recent() -> None:
    """Rates are of the last minute, whatever came before."""
    pulse = pulse_of(a_day())
    assert pulse.snapshot(T0 + 2 * MINUTE_MS).per_s == 0
    assert pulse.snapshot(T0 + 2 * MINUTE_MS).events == 5


@given(st.lists(st.integers(T0, T0 + 10 * MINUTE_MS), max_size=200))
def test_the_last_minute_is_counted_in_bounded_room(times: list[int]) -> None:
    """In order of time, the count is exact to one bucket; out of order, it is never too high; room stays bounded."""
    recent, now = Recent(), T0 + 10 * MINUTE_MS
    for at_ms in sorted(times):
        recent.add(at_ms)
    oldest = (now // BUCKET_MS - BUCKETS + 1) * BUCKET_MS
    assert recent.count(now) == sum(at_ms >= oldest for at_ms in times)
    assert len(recent.buckets) <= BUCKETS + 1
    shuffled = Recent()
    for at_ms in times:
        shuffled.add(at_ms)
    assert shuffled.count(now) <= recent.count(now)


def test_a_flood_of_tenants_drops_the_quiet_ones_and_says_so() -> None:
    """Memory is bounded by the number of tenants followed; the busiest stay."""
    gate = Gate()
    gate.write()
    for number in range(5):
        gate.forged(0, tenant=f"t{number}", offset=1 + number)
    seen = pulse_of(gate, tenants_max=3).snapshot(T0)
    assert ([tenant.name for tenant in seen.tenants], seen.dropped) == (["t2", "t3", "t4"], 3)
    assert "3 quiet ones no longer followed" in drawn(seen)
    assert "2 more tenants" in drawn(seen, tenants_max=1)


def test_a_flood_of_held_writes_is_counted_and_the_oldest_age_kept() -> None:
    """A tenant's queue fills no memory here."""
    gate = Gate()
    gate.write(content=PATTERN)
    for number in range(HELD_MAX + 4):
        gate.forged(0, event_id=f"h{number}", offset=1 + number, decided_ms=T0 + 1 + number)
    seen = pulse_of(gate).snapshot(T0)
    assert (seen.held, seen.held_since_ms, len(seen.tenants[0].held)) == (HELD_MAX + 5, T0, HELD_MAX)


def test_the_picture_says_what_an_operator_asks_first() -> None:
    """Behind, rate, wait, held with its age, verdicts, reasons, tenants with their calibration."""
    seen = pulse_of(a_day()).snapshot(T0 + 3_000 + 7_200_000)
    text = drawn(seen, [Lag("seal", 0, 0, 0, True), Lag("screen", 70, 2, 69, True), Lag("land", 0, 0, 0, False)])
    lines = [line.split() for line in text.splitlines()]
    assert ["screen", "70", "2", "69"] in lines
    assert ["land", "not", "started", "0", "0"] in lines
    assert "held     1 wait for a reviewer, the oldest for 2 h" in text
    assert "wait     5 ms from intake to verdict at the median" in text
    assert ["held", "·", "1", "20%"] in lines
    assert ["acme", "·", "1", "1", "1", "·", "1", "2", "h", "cold", "1"] in lines
    assert "it tells agents what to do more than its reach and tier allow" in " ".join(text.split())


def test_programs_get_the_same_numbers() -> None:
    """JSON has every decision, the lag, and the tenants that are shown."""
    data = as_data(pulse_of(a_day()).snapshot(T0 + 10_000), [Lag("seal", 3, 1, 3, True)], "here", 20)
    assert data["decisions"] == {
        "accept": 1, "contain": 1, "quarantine": 1, "reject": 0, "duplicate": 1, "record": 1,
    }  # fmt: skip
    assert data["lag"]["seal"] == {"behind": 3, "partitions": 1, "worst": 3, "started": True, "over_quota": 0}
    assert [tenant["tenant"] for tenant in data["tenants"]] == ["acme"]


def test_nothing_that_is_counted_acts_on_the_terminal() -> None:
    """Reasons, phases and tenants with escape sequences are spelled out."""
    gate = Gate()
    gate.write()
    phase = gate.verdict(0)["score"] | {"phase": "\x1b[2Jcold\u202e"}
    gate.forged(0, offset=1, reasons=["\x1b]0;x\x07", "[bold]x[/]"], score=phase, tenant="a\u202e")
    text = drawn(pulse_of(gate).snapshot(T0))
    hidden = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
    assert {unicodedata.category(character) for character in text if character != "\n"}.isdisjoint(hidden)
    assert "[bold]x[/]" in text
