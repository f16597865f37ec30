"""*screen*: re-delivery, crashes between two changelog records, gaps; the core is real, only the log is in memory."""

from dataclasses import replace
from hashlib import sha256

import pytest
from tests.gate.build import PARTITION, PARTITIONS, RING, T0, TENANT, MemoryRows, axis, sealed
from tests.stages import holding

from memsluice.envelope import codec
from memsluice.envelope.partition_orders import Missing
from memsluice.envelope.records import accepted_from_bytes, held_from_bytes
from memsluice.envelope.seals import Position, Sealed, open_, sealed_from_bytes, sealed_to_bytes
from memsluice.errors import GapError, SealError, StateError
from memsluice.events.names import VERDICT, EventType
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.gate.checks import duplicates
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.policy.model import default
from memsluice.gate.state.kinds import EVENT, LYING
from memsluice.stages import screen as module
from memsluice.stages.screen import ScreenStage
from memsluice.topics.names import ACCEPTED, AUDIT, EVENTS, QUARANTINE, SEALED

TRACE = ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")


def stage() -> ScreenStage:
    """Return a stage with nothing cached, which holds what a pattern occurs in."""
    return ScreenStage(lambda: RING, holding.policies().of, 8)


def record(event: Sealed, offset: int) -> Record:
    """Return the sealed record of an event."""
    value = sealed_to_bytes(RING, "seal-1", event)
    return Record(SEALED, PARTITION, offset, event.tenant.encode(), value, (TRACE,), event.position.append_ms)


def write(offset: int, **fields):
    """Return a user's write."""
    fields.setdefault("vector", axis(offset % 100))
    return sealed("user", EventType.WRITE, offset, content=fields.pop("content", f"note {offset}"), **fields)


def marker(offset: int) -> Sealed:
    """Return what stands for a dead letter."""
    return Sealed(
        position=Position(EVENTS, PARTITION, offset, T0 + offset * 1000),
        type="marker",
        marker_reason="forged_signature",
    )


def apply(rows: MemoryRows, step, upto: int | None = None) -> None:
    """Apply a step's row changes, or only the first of them."""
    for change in list(step.changes)[:upto]:
        rows.put(change.key, change.value)


def mixed_day() -> list[Sealed]:
    """Writes, recalls, observations, a duplicate, another content under a known id, a marker."""
    day = [sealed("runtime", EventType.OBSERVATION, 0, origin="open")]
    day += [sealed("reader", EventType.RECALL, n, question="why?", vector=axis(n)) for n in (1, 2)]
    day += [write(3, id="a"), sealed("agent", EventType.WRITE, 4, content="x", vector=axis(9)), marker(5)]
    again = write(6, id="a", time=day[3].payload.time, content="note 3")
    day += [again, write(7, id="a", content="other"), sealed("runtime", EventType.OBSERVATION, 8, origin="web")]
    day += [sealed("agent", EventType.WRITE, 9, content="y", vector=axis(8)), write(10, content="z")]
    return day


def test_an_accepted_write_gives_an_audit_record_and_an_entry_that_verifies() -> None:
    """What lands carries an admission over exactly this content, vector and scope, and the producer's trace."""
    rows = MemoryRows()
    step = stage().process(record(write(0), 0), rows)
    topics = {output.topic: output for output in step.outputs}
    assert set(topics) == {AUDIT, ACCEPTED}
    accepted = accepted_from_bytes(RING, TENANT, topics[ACCEPTED].value)
    assert (accepted.content, accepted.admission.version, accepted.admission.principal) == ("note 0", 0, "ana")
    verdict = open_(RING, TENANT, VERDICT, topics[AUDIT].value)
    assert verdict["object_id"] == accepted.admission.object_id
    assert TRACE in topics[ACCEPTED].headers


def test_a_held_write_travels_with_the_sealed_event_it_was_decided_on() -> None:
    """Replay needs the whole event: it comes back out of quarantine as it went in."""
    rows, screen = MemoryRows(), stage()
    for event in mixed_day():
        step = screen.process(record(event, event.position.offset), rows)
        apply(rows, step)
        for output in step.outputs:
            if output.topic == QUARANTINE:
                value, verdict = held_from_bytes(RING, TENANT, output.value)
                assert sealed_from_bytes(RING, TENANT, value) == event
                assert verdict.reasons == ("duplicates.other_content",)
                return
    pytest.fail("nothing was held")


def test_a_redelivery_sends_and_changes_nothing() -> None:
    """What was decided was sent in the transaction of its rows: read again, or sealed again with another vector, a
    record says nothing more."""
    rows, screen = MemoryRows(), stage()
    for event in mixed_day():
        apply(rows, screen.process(record(event, event.position.offset), rows))
    before = dict(rows)
    for event in mixed_day():
        other = codec.vector_to_text(axis(200))  # a second sealing, in another batch of the encoder
        resealed = event if event.vector_text is None else replace(event, vector_text=other)
        step = stage().process(record(resealed, event.position.offset + 100), rows)
        assert (list(step.outputs), list(step.changes)) == ([], [])
    assert dict(rows) == before


def test_a_second_sealing_of_another_text_sends_nothing() -> None:
    """A policy file or the patterns of secrets changed between two sealings of one intake record: the first stands and
    was sent, and no admission of it goes out with the second one's content."""
    rows, screen = MemoryRows(), stage()
    apply(rows, screen.process(record(write(0, content="it is [redacted: pin]"), 0), rows))
    step = screen.process(record(write(0, content="it is 4711"), 1), rows)
    assert (list(step.outputs), list(step.changes)) == ([], [])


def test_rows_of_half_an_event_stop_the_partition() -> None:
    """The fence writes an event's rows together. Rows that something else wrote, or cut, are no state to decide on."""
    rows = MemoryRows()
    for event in mixed_day():
        step = stage().process(record(event, event.position.offset), rows)
        for cut in range(1, len(step.changes)):
            half = MemoryRows(rows)
            apply(half, step, cut)
            with pytest.raises(StateError, match=f"offset {event.position.offset} is undecided"):
                stage().process(record(event, event.position.offset), half)
        apply(rows, step)


def test_a_missing_intake_offset_stops_the_worker() -> None:
    """Every intake offset has one sealed record: a jump means that a record was lost."""
    rows, screen = MemoryRows(), stage()
    apply(rows, screen.process(record(write(0), 0), rows))
    with pytest.raises(GapError):
        screen.process(record(write(2), 1), rows)


def test_a_second_sealing_after_a_marker_stays_a_dead_letter() -> None:
    """What was refused at first is not let in because a later sealing of the same offset thinks otherwise."""
    rows, screen = MemoryRows(), stage()
    apply(rows, screen.process(record(marker(0), 0), rows))
    step = screen.process(record(write(0), 1), rows)
    assert (list(step.outputs), list(step.changes)) == ([], [])


def test_a_sealed_record_that_nobody_sealed_stops_the_worker() -> None:
    """Nothing is decided on a record that the gate did not sign for this tenant and this partition."""
    rows, screen, event = MemoryRows(), stage(), write(0)
    good = record(event, 0)
    with pytest.raises(SealError):
        screen.process(Record(SEALED, PARTITION, 0, b"globex", good.value), rows)
    with pytest.raises(SealError):
        screen.process(Record(SEALED, PARTITION, 0, b"\xff", good.value), rows)
    with pytest.raises(SealError):
        screen.process(Record(SEALED, PARTITION, 0, good.key, good.value.replace(b'payload"', b'payloae"')), rows)
    with pytest.raises(StateError):
        screen.process(Record(SEALED, PARTITION + 1, 0, good.key, good.value), rows)


def test_expired_rows_are_swept_and_no_decision_notices() -> None:
    """State is bounded: rows of a past window go, a few with each event, and only those."""
    rows, screen = MemoryRows(), stage()
    for offset in range(40):
        apply(rows, screen.process(record(write(offset), offset), rows))
    before = len(rows)
    later = 1_790_000_000_000
    for offset in range(40, 240):
        event = write(offset, append_ms=later + offset, principal=f"p{offset}", session=f"s{offset}")
        apply(rows, screen.process(record(event, offset), rows))
    left = [key for key in rows if key.startswith(b"acme\0event\0e") and int(key.rsplit(b"e", 1)[1]) < 40]
    assert before >= 80
    assert left == []


def test_a_backlog_from_before_a_rotation_is_signed_with_todays_key() -> None:
    """Which key signs depends on now: events appended before the new key was valid do not stop the worker."""
    ring = RING.retire("seal-1").with_key(replace(RING.get("seal-1"), kid="seal-2", not_before_ms=T0 + 1))
    step = ScreenStage(lambda: ring, default().of, 8, lambda: T0 + 2).process(record(write(0), 0), MemoryRows())
    audit = next(output for output in step.outputs if output.topic == AUDIT)
    assert open_(ring, TENANT, VERDICT, audit.value)["seal_kid"] == "seal-2"


def test_verdicts_of_a_tenant_form_a_chain_over_the_records_as_sent() -> None:
    """Every audit record names the digest of the one before it, so that an edit, a gap or a reorder shows."""
    rows, screen, previous, seen = MemoryRows(), stage(), "", 0
    for event in mixed_day():
        step = screen.process(record(event, event.position.offset), rows)
        apply(rows, step)
        for output in step.outputs:
            if output.topic == AUDIT:
                verdict = open_(RING, TENANT, VERDICT, output.value)
                assert (verdict["chain_seq"], verdict["chain_previous"]) == (seen + 1, previous)
                previous, seen = sha256(output.value).hexdigest(), seen + 1
    assert seen == len(mixed_day()) - 1


def test_time_never_runs_back() -> None:
    """Intake topics have leaders with clocks of their own: a decision's clock is the latest that was seen."""
    rows, screen = MemoryRows(), stage()
    apply(rows, screen.process(record(write(0, append_ms=T0 + 5000), 0), rows))
    step = screen.process(record(write(1, append_ms=T0), 1), rows)
    assert open_(RING, TENANT, VERDICT, step.outputs[0].value)["decided_ms"] == T0 + 5000


def test_a_broker_clock_that_stepped_back_stops_nothing() -> None:
    """Offset 0 is older in the log and younger by the clock than offset 1: read again, it is a repetition."""
    rows, screen = MemoryRows(), stage()
    first = record(write(0, append_ms=T0 + 5000), 0)
    apply(rows, screen.process(first, rows))
    apply(rows, screen.process(record(write(1, append_ms=T0 + 4999), 1), rows))
    again = stage().process(first, rows)
    assert (list(again.outputs), list(again.changes)) == ([], [])


def test_a_log_that_was_cut_or_made_anew_stops_the_worker() -> None:
    """A younger record at an offset that was decided is no repetition: it must not vanish."""
    rows, screen = MemoryRows(), stage()
    for offset in range(3):
        apply(rows, screen.process(record(write(offset), offset), rows))
    with pytest.raises(StateError, match="younger"):
        screen.process(record(write(1, append_ms=T0 + 99_000), 3), rows)


@pytest.mark.parametrize(("before", "after"), [(10, 20), (20, 10), (3, 4), (4, 3)])
def test_a_policy_that_changes_the_history_keeps_cache_and_rows_alike(before, after) -> None:
    """The history's size may change while running: a restart afterwards finds the very state it left."""
    rows, shipped = MemoryRows(), default().default
    memsad = shipped.memsad
    sizes = [
        shipped.model_copy(update={"memsad": memsad.model_copy(update={"history_size": n})}) for n in (before, after)
    ]
    now = [sizes[0]]
    screen = ScreenStage(lambda: RING, lambda tenant: now[0], 8)
    for offset in range(60):
        now[0] = sizes[offset >= before + 2]
        event = sealed("reader", EventType.RECALL, offset, question="why?", vector=axis(offset))
        apply(rows, screen.process(record(event, offset), rows))
        policy = now[0].memsad
        loaded, cached = MemsadState.load(rows, TENANT, policy), screen._memsad[PARTITION, TENANT]
        assert sorted(loaded.numbers) == sorted(cached.numbers)
        assert len(loaded.numbers) <= policy.history_size


def test_what_others_decided_meanwhile_counts_once_a_partition_is_back() -> None:
    """A partition that went and came back brings rows of its own: nothing decoded before is used any more."""
    rows, here, there, unbroken = MemoryRows(), stage(), stage(), stage()
    kept, sent, expected = MemoryRows(), [], []
    day = [sealed("runtime", EventType.OBSERVATION, 0, origin="open"), write(1)]
    day += [sealed("reader", EventType.RECALL, n, question=f"why {n}?", vector=axis(n)) for n in (2, 3, 4)]
    day += [write(n, content=f"note why {n}?", vector=axis(2, n - 2, 0.5)) for n in (5, 6)]
    for event in day:
        offset = event.position.offset
        at = there if 2 <= offset <= 4 else here
        if offset == 5:
            here.forget(PARTITION)
        step, whole = (one.process(record(event, offset), some) for one, some in ((at, rows), (unbroken, kept)))
        apply(rows, step)
        apply(kept, whole)
        sent.append(list(step.outputs))
        expected.append(list(whole.outputs))
    assert sent == expected


def test_of_many_tenants_the_latest_stay_decoded_and_none_decides_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept decoded is bounded; who was put out is decoded from its rows again, to the same verdicts."""
    monkeypatch.setattr(module, "TENANTS_CACHED_MAX", 2)
    rows, kept, bounded = MemoryRows(), MemoryRows(), stage()
    tenants = [name for name in (f"t{n}" for n in range(200)) if partition_of(name, PARTITIONS) == PARTITION][:3]
    for offset in range(12):
        event = write(offset, tenant=tenants[offset % 3])
        step = bounded.process(record(event, offset), rows)
        fresh = stage().process(record(event, offset), kept)
        assert list(step.outputs) == list(fresh.outputs)
        apply(rows, step)
        apply(kept, fresh)
    assert len(bounded._memsad) == 2
    assert bounded._memory.keys() <= bounded._memsad.keys()


def test_a_sealed_record_without_a_value_stops_the_worker() -> None:
    """The sealed log is not compacted: a record of nothing is none of ours."""
    with pytest.raises(StateError, match="without a value"):
        stage().process(Record(SEALED, PARTITION, 0, b"acme", None), MemoryRows())


def test_a_policy_that_turns_to_memsad_forgets_no_rows_of_the_other_detector() -> None:
    """While MEMSAD decides, what the default detector kept rests; when it decides again, it goes on from there."""
    rows, now = MemoryRows(), [default().default]
    screen = ScreenStage(lambda: RING, lambda tenant: now[0], 8)
    for offset, detector in enumerate(("default", "memsad", "default")):
        now[0] = default().default.model_copy(update={"detector": detector})
        event, before = write(offset), MemoryRows(rows)
        step = screen.process(record(event, offset), rows)
        fresh = ScreenStage(lambda: RING, lambda tenant: now[0], 8).process(record(event, offset), before)
        assert [change.value for change in step.changes] == [change.value for change in fresh.changes]
        apply(rows, step)


def test_an_id_is_free_again_at_the_very_end_of_its_row() -> None:
    """Until then another content under it is kept beside the first one's row; from then on it is the first."""
    for late, first in ((-1, False), (0, True)):
        rows, screen = MemoryRows(), stage()
        apply(rows, screen.process(record(write(0, id="a"), 0), rows))
        again = write(1, id="a", content="another", append_ms=duplicates.expires_ms(T0) + late)
        step = screen.process(record(again, 1), rows)
        keys = {change.key for change in step.changes if change.value is not None}
        assert (EVENT.key(TENANT, duplicates.event_row_id(again, first=True)) in keys) is first
        assert (EVENT.key(TENANT, duplicates.event_row_id(again, first=False)) in keys) is not first


def test_a_policy_that_lowers_what_is_kept_forgets_at_once_and_a_restart_sees_the_same() -> None:
    """Questions and entries of the default detector may become fewer while running: the next write sees no more."""
    rows, shipped = MemoryRows(), default().default
    few = shipped.detect.model_copy(update={"questions": 3, "entries": 50})
    now = [shipped]
    screen = ScreenStage(lambda: RING, lambda tenant: now[0], 8)
    for offset in range(8):
        event = sealed("reader", EventType.RECALL, offset, question=f"why {offset}?", vector=axis(offset))
        apply(rows, screen.process(record(event, offset), rows))
    now[0] = shipped.model_copy(update={"detect": few})
    before, event = MemoryRows(rows), write(8)
    step = screen.process(record(event, 8), rows)
    fresh = ScreenStage(lambda: RING, lambda tenant: now[0], 8).process(record(event, 8), before)
    assert list(step.outputs) == list(fresh.outputs)
    assert len(screen._memory[PARTITION, TENANT].questions) == 3


def test_what_lands_is_counted_in_the_partitions_rows() -> None:
    """One row of the partition says how many entries lie there, by tier and zone; it is gone with the last of them."""
    rows, screen = MemoryRows(), stage()
    apply(rows, screen.process(record(write(0, key="k"), 0), rows))
    (key,) = [key for key in rows if key.startswith(LYING.key("", ""))]
    assert LYING.load(rows[key]).number == 1
    apply(rows, screen.process(record(write(1, key="other"), 1), rows))
    assert LYING.load(rows[key]).number == 2


def test_intake_records_whose_loss_was_acknowledged_are_passed_once() -> None:
    """The position row moves behind them; the next gap, a longer one, or one after a rebalance stops it again."""
    rows, screen = MemoryRows(), stage()
    apply(rows, screen.process(record(write(0), 0), rows))
    with pytest.raises(GapError) as caught:
        screen.process(record(write(3), 1), rows)
    assert (caught.value.topic, caught.value.first, caught.value.last) == (EVENTS, 1, 2)
    screen.acknowledge(PARTITION, Missing(EVENTS, 1, 2))
    with pytest.raises(GapError) as caught:
        screen.process(record(write(4), 1), rows)
    assert (caught.value.first, caught.value.last) == (3, 3)
    screen.forget(PARTITION)
    with pytest.raises(GapError):
        screen.process(record(write(3), 1), rows)
    screen.acknowledge(PARTITION, Missing(EVENTS, 1, 2))
    step = screen.process(record(write(3), 1), rows)
    assert step.verdict is not None
    apply(rows, step)
    assert not screen.process(record(write(2), 2), rows).changes
    with pytest.raises(GapError):
        screen.process(record(write(6), 2), rows)
