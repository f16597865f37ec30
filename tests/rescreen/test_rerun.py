"""History decided again: one core, one verdict; another policy, others; a beginning that is gone is told apart."""

from dataclasses import replace

import orjson
import pytest
from tests.envelope.made import made
from tests.gate.build import PARTITION, RING, T0, TENANT, axis, sealed
from tests.gate.test_activation import STRICT, order
from tests.rescreen.build import History, Topic
from tests.stages import holding
from tests.stages.test_screen import mixed_day, write
from tests.stages.test_screen_review import BAD

from memsluice.envelope import codec
from memsluice.envelope.partition_orders import Missing
from memsluice.envelope.seals import Position, Sealed
from memsluice.envelope.verdict import Decision, Withdrawal
from memsluice.errors import GapError
from memsluice.events.models import Zone
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.operations.rescreen.history import Told
from memsluice.operations.rescreen.report import RescreenReport
from memsluice.operations.rescreen.rerun import Decided, Wanted
from memsluice.topics.names import COMMANDS, EVENTS

SHORT = "name: short\ncontent_bytes_max: 2\n"
NEIGHBOUR = next(name for name in (f"n{n}" for n in range(100)) if partition_of(name, 8) == PARTITION)

OPEN = "name: open\ninstructions: {enabled: false}\nwording: {action: report}\n"


def placed(events: list[Sealed]) -> list[Sealed]:
    """Give events the intake offsets of their places, a second apart."""
    return [
        replace(event, position=Position(event.position.topic, PARTITION, at, T0 + at * 1_000))
        for at, event in enumerate(events)
    ]


def theirs(offset: int) -> Sealed:
    """Return a write of another tenant on the same partition."""
    event = write(offset)
    payload = event.payload.model_copy(update={"tenant": NEIGHBOUR})
    return replace(event, payload=payload, content_digest=codec.content_digest(RING, NEIGHBOUR, payload.content))


def test_the_policy_of_then_reproduces_every_verdict_and_nothing_is_sent() -> None:
    """One core: a run under the same policy gives the audit's verdicts, whole, but for keys and chain."""
    history = History(mixed_day())
    rows = dict(history.rows)
    report, run, decided = history.rerun(None)
    assert (report.compared, report.changed, report.reproduced, report.unknown) == (10, 0, 10, 0)
    assert (report.same_other_reasons, report.other_reasons()) == (0, [])
    assert [(part.partition, part.whole, part.read, part.beyond) for part in run.parts] == [
        (PARTITION, True, 11, False)
    ]
    assert {one.verdict.seal_kid + one.verdict.admission_kid for one in decided} == {""}
    assert dict(history.rows) == rows


def test_another_policy_changes_what_it_would_have_changed() -> None:
    """Counted by tenant and fate and by reason, listed by id, no content in it."""
    report, run, _ = History([write(0, content="zebra"), write(1, content="ab"), write(2, content="zebras")]).rerun(
        SHORT
    )
    assert dict(report.pairs) == {(TENANT, "memory.write.v1", "accept", "reject"): 2}
    assert report.other_reasons() == [("limits.content_bytes", 0, 2)]
    assert [(one.was.event_id, one.own) for one in report.listed] == [("e0", False), ("e2", False)]
    told = report.as_data(run.parts, 1)
    assert (told["changed"], len(told["events"]), told["events_left_out"]) == (2, 1, 1)
    assert b"zebra" not in orjson.dumps(told)


def test_a_command_follows_what_the_candidate_did_to_its_entry() -> None:
    """A rejection of what the candidate never held finds nothing; its verdict changes with it, and is said to."""
    held = write(0, content=BAD)
    reject = sealed("reviewer", EventType.COMMAND, 1, action="reject", target="e0", digest=held.content_digest,
                    expires_at="2030-01-01T00:00:00Z")  # fmt: skip
    report, _, _ = History([held, reject]).rerun(OPEN)
    assert dict(report.pairs) == {
        (TENANT, "memory.write.v1", "quarantine", "accept"): 1,
        (TENANT, "memory.command.v1", "record", "reject"): 1,
    }


def test_shadow_is_seen_as_what_lands_all_the_same() -> None:
    """Per tenant: the decision stays, and that it lands is a change."""
    shadow = f"name: x\nwording: {{{holding.BUDGET}}}\ntenants: {{{TENANT}: {{mode: shadow}}}}\n"
    report, _, decided = History([write(0, content=BAD)]).rerun(shadow)
    assert dict(report.pairs) == {(TENANT, "memory.write.v1", "quarantine", "quarantine (landed: shadow)"): 1}
    assert (report.shadowed, decided[0].verdict.mode) == ([0, 1], "shadow")


def test_a_beginning_that_retention_took_is_told_apart_from_the_candidate() -> None:
    """A rejection whose write is gone changes under its own policy too: marked, counted, and the cut is named."""
    held = write(0, content=BAD)
    reject = sealed("reviewer", EventType.COMMAND, 1, action="reject", target="e0", digest=held.content_digest,
                    expires_at="2030-01-01T00:00:00Z")  # fmt: skip
    report, run, _ = History([held, reject, write(2)]).cut(1).rerun(None)
    assert [(part.first_offset, part.whole, part.first_ms) for part in run.parts] == [(1, False, T0 + 1_000)]
    assert (report.changed, report.own_changes, report.not_reproduced, report.reproduced) == (1, 1, 1, 1)
    assert report.listed[0].own


def test_the_candidate_holds_whatever_history_activated_and_the_control_does_not() -> None:
    """An activation of then is recorded and changes nothing; each event's own policy is found in the audit."""
    orders = sealed("operator", EventType.COMMAND, 0, approvers=("op-1", "op-2"), **order(STRICT))
    page = sealed("web", EventType.WRITE, 1, content="a page", vector=axis(9))
    report, _, decided = History([orders, page]).rerun(None)
    assert dict(report.pairs) == {(TENANT, "memory.write.v1", "reject", "contain"): 1}
    assert (report.reproduced, report.no_control) == (2, 0)
    assert decided[1].was is not None
    assert (decided[1].was.policy.split("@")[0], decided[1].now.policy.split("@")[0]) == ("strict", "default")


def test_a_policy_that_nobody_knows_any_more_gives_no_control() -> None:
    """Its activation is no longer in the audit: its events are counted as having no control, not as reproduced."""
    orders = sealed("operator", EventType.COMMAND, 0, approvers=("op-1", "op-2"), **order(STRICT))
    history = History([orders, write(1)])
    history.log = replace(history.log, audit=Topic(list(history.log.audit.read(PARTITION, 1))))
    report, _, _ = history.rerun(None)
    assert (report.unknown, report.compared, report.no_control, report.reproduced) == (1, 1, 1, 0)


def test_one_tenant_is_decided_as_among_all() -> None:
    """A neighbour on the partition is passed over; the tenant's verdicts and clock are as in the whole run."""
    events = placed([write(0), theirs(1), write(2), theirs(3), *mixed_day()[1:5]])
    history = History(events)
    whole, alone = history.rerun(None)[2], history.rerun(None, Wanted(tenant=TENANT))[2]
    assert [one.verdict for one in alone] == [one.verdict for one in whole if one.now.tenant == TENANT]
    assert len(alone) == len(whole) - 2
    assert history.rerun(None, Wanted(tenant="nobody"))[2] == []


def test_what_is_told_is_bounded_by_time_and_number() -> None:
    """--since tells less and decides as much; --until and the number of records end the run, and it says so."""
    history = History([write(n) for n in range(6)])
    late = history.rerun(None, Wanted(since_ms=T0 + 4_000))[2]
    assert [one.now.event_id for one in late] == ["e4", "e5"]
    assert [one.now.event_id for one in history.rerun(None, Wanted(until_ms=T0 + 2_000))[2]] == ["e0", "e1"]
    _, run, some = history.rerun(None, Wanted(events_max=3))
    assert (len(some), run.parts[0].read, run.parts[0].beyond) == (3, 3, True)
    assert not history.rerun(None, Wanted(events_max=6))[1].parts[0].beyond


def test_a_second_sealing_counts_once() -> None:
    """At-least-once: the record that *screen* knew for a repetition is one here too."""
    report, run, _ = History([write(0), write(1), write(0), write(1), write(2)]).rerun(None)
    assert (report.compared, report.reproduced, run.parts[0].read) == (3, 3, 5)


def test_a_record_that_does_not_verify_is_left_out_and_the_rest_is_decided() -> None:
    """A key that was lost, or a forged record: counted, no gap is complained of, the others stay comparable."""
    history = History([write(n) for n in range(4)])
    records = list(history.log.sealed.read(PARTITION))
    records[1] = replace(records[1], value=b'{"payload": "\x1b[2J"}')
    history.log = replace(history.log, sealed=Topic(records))
    report, run, _ = history.rerun(None)
    assert (report.compared, report.reproduced, run.parts[0].unverified) == (3, 3, 1)


def test_a_second_sealing_behind_a_record_that_cannot_be_read_counts_once() -> None:
    """The place in the log is forgotten there, and the event's own row tells a repetition: no run ends by it."""
    history = History([write(0), write(1), write(2), write(1), write(3)])
    records = list(history.log.sealed.read(PARTITION))
    records[2] = replace(records[2], value=b"{")
    history.log = replace(history.log, sealed=Topic(records))
    report, run, _ = history.rerun(None)
    assert (report.compared, report.reproduced, run.parts[0].unverified) == (3, 3, 1)


def test_records_that_an_operator_acknowledged_as_lost_are_passed_over_and_no_others() -> None:
    """The gate went on behind them when it happened; a candidate is judged on the same history, or on none."""
    history = History([write(n) for n in range(6)])
    kept = [record for record in history.log.sealed.read(PARTITION) if record.offset not in (2, 3)]
    lost = (PARTITION, Missing(EVENTS, 2, 3))
    history.log = replace(history.log, sealed=Topic(kept), losses=[(PARTITION, Missing(EVENTS, 3, 3)), lost])
    report, run, _ = history.rerun(None)
    assert (report.compared, run.parts[0].unverified) == (4, 0)
    for losses in (
        (),
        [(PARTITION, Missing(EVENTS, 2, 2))],
        [(PARTITION + 1, lost[1])],
        [(PARTITION, Missing("x", 2, 3))],
    ):
        history.log = replace(history.log, losses=losses)
        with pytest.raises(GapError, match="a record is missing"):
            history.rerun(None)


def test_commands_and_events_come_in_the_order_of_the_sealed_log() -> None:
    """Both intake topics have offsets of their own, and each keeps its place."""
    command = sealed("operator", EventType.COMMAND, 0, action="protect", target="k", expires_at="2030-01-01T00:00:00Z")
    command = replace(command, position=Position(COMMANDS, PARTITION, 0, T0 + 500))
    report, _, decided = History([write(0), command, write(1)]).rerun(None)
    assert [one.now.type.split(".")[1] for one in decided] == ["write", "command", "write"]
    assert report.reproduced == 3


def test_what_look_back_took_is_part_of_what_was_done() -> None:
    """A recall's own decision never changes; that it would take an entry out is a change all the same."""
    recall = made(type="memory.recall.v1", decision=Decision.RECORD)
    took = replace(recall, withdraws=(Withdrawal("o", Zone.GUIDANCE, "note", ""),))
    was, now = Told.of(recall), Told.of(took)
    assert (was.effect == now.effect, now.fate) == (False, "record, took 1 back")
    assert Told.of(replace(took, type="memory.command.v1")).takes_back == ()
    report = RescreenReport()
    report.take(Decided(was, now, None, took))
    assert (report.changed, report.taken_back) == (1, [0, 1])
