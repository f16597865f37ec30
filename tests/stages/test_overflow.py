"""Events of a tenant over its quota: moved as they came, taken back as they were, decided in their order."""

from base64 import b64encode
from collections import Counter
from dataclasses import asdict, replace
from types import SimpleNamespace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders import minilm
from tests.gate.build import PARTITION as SCREENED
from tests.gate.build import MemoryRows
from tests.stages.test_screen import apply, marker, record, stage, write
from tests.stages.test_seal import (
    FIELDS,
    KEYRING,
    NOW_MS,
    OTHER,
    PARTITION,
    REGISTRY,
    TENANT,
    message,
    refused_but_seen,
)
from tests.stages.test_seal import record as came

from memsluice.encoder import Encoder
from memsluice.envelope.keys import Purpose
from memsluice.envelope.registry import Registry
from memsluice.envelope.seals import GLOBAL, Waited, sealed_from_bytes
from memsluice.errors import GapError, SealError, StateError
from memsluice.events import limits
from memsluice.events.models import Observation, Write
from memsluice.events.names import MOVED_HEADER, EventType
from memsluice.events.records import Output, Record
from memsluice.gate.policy.model import parse
from memsluice.runtimes.kafka.overflow import Found, Overflow, Way
from memsluice.stages.overflow import MARKER_REASON, Overflowing, move, taken_back
from memsluice.stages.quota import Quota
from memsluice.stages.seal import SealStage
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.stage_wrappers import ObservedBatch, Watch
from memsluice.topics.names import COMMANDS, DEAD_LETTER, EVENTS, OVERFLOW, PARTITIONS, SEALED

LATER_MS = NOW_MS + 60_000


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The real encoder, loaded once."""
    return minilm()


def sealing(encoder: Encoder, policy: str = "") -> SealStage:
    """Return *seal*."""
    policies = parse(f"name: test\n{policy}").of
    return SealStage(lambda: KEYRING, lambda: REGISTRY, encoder, PARTITIONS, lambda: LATER_MS, policies=policies)


def lies(output: Output, offset: int = 3) -> Record:
    """Return an output as a record of its topic, appended a minute later."""
    return Record(
        output.topic, output.partition, offset, output.key, output.value, output.headers, timestamp_ms=LATER_MS
    )


def moved(original: Record, after: int | None = None) -> list[Output]:
    """Return what moves a record."""
    return move(original, TENANT, after, KEYRING, KEYRING.signing(Purpose.SEAL, NOW_MS).kid)


def test_a_moved_event_is_sealed_as_if_it_had_never_waited(encoder: Encoder) -> None:
    """Bytes, headers, place and time are those of its intake, so that every rule finds what it would have found."""
    original = came(message(), offset=7)
    copy, stands = moved(original, after=5)
    assert (copy.topic, copy.partition, copy.key, copy.value) == (OVERFLOW, PARTITION, original.key, original.value)
    instead = sealed_from_bytes(KEYRING, GLOBAL, stands.value or b"")
    assert (stands.topic, stands.key, instead.type, instead.marker_reason) == (SEALED, b"", "marker", MARKER_REASON)
    assert instead.position.offset == 7
    stage = sealing(encoder)
    ((late,),), ((straight,),) = stage.process([lies(copy)]), stage.process([original])
    after = sealed_from_bytes(KEYRING, TENANT, late.value or b"")
    assert after.waited == Waited(LATER_MS, 5)
    assert replace(after, waited=None) == sealed_from_bytes(KEYRING, TENANT, straight.value or b"")
    assert late.headers == straight.headers


def test_an_event_that_waited_and_does_not_hold_is_a_dead_letter_of_its_intake(encoder: Encoder) -> None:
    """Its letter has the bytes and the place that its sender knows, not those of the overflow."""
    original = came(message(structured=True), offset=9)
    broken = replace(original, value=(original.value or b"").replace(b'"sig": "', b'"sig": "AAAA'))
    letter, stands = sealing(encoder).process([lies(moved(broken)[0])])[0]
    assert (letter.topic, letter.value) == (DEAD_LETTER, broken.value)
    assert b'"offset":9' in (letter.headers[-1][1] or b"")
    assert MOVED_HEADER not in dict(letter.headers)
    sealed = sealed_from_bytes(KEYRING, GLOBAL, stands.value or b"")
    assert (sealed.position.offset, sealed.waited) == (9, Waited(LATER_MS, None))
    assert sealing(encoder).sender([letter, stands]) is None


def test_what_the_gate_did_not_move_is_refused() -> None:
    """Whoever can write to the overflow brings in nothing: no header, a forged one, or one that another event had."""
    first, second = came(message(), offset=1), came(message(Write(**FIELDS, content="Another.")), offset=2)
    copy, other = lies(moved(first)[0]), lies(moved(second)[0])
    header = copy.headers[-1][1] or b""
    for changed in (
        replace(copy, headers=copy.headers[:-1]),
        replace(copy, headers=(*copy.headers[:-1], (MOVED_HEADER, header[:-9] + b"AAAA" + header[-5:]))),
        replace(other, headers=(*other.headers[:-1], copy.headers[-1])),
        replace(copy, partition=(copy.partition + 1) % PARTITIONS, headers=(("more", b"x"), *copy.headers)),
    ):
        with pytest.raises(SealError):
            taken_back(changed, KEYRING)
    assert taken_back(copy, KEYRING).record == first


def test_nobody_s_event_waits_behind_another_tenant_s(encoder: Encoder) -> None:
    """A record under another's key is no event of that tenant: what a session saw would otherwise be held up by it."""
    stage, mine = sealing(encoder), came(message())
    assert stage.lane(mine) == TENANT
    assert stage.may_wait(mine, TENANT)
    foreign = replace(mine, key=OTHER.encode())
    assert stage.lane(foreign) == OTHER
    assert not stage.may_wait(foreign, OTHER)


def test_what_a_session_saw_under_another_s_key_is_no_event_of_that_tenant_s(encoder: Encoder) -> None:
    """It taints its own session; it uses up nobody else's quota, and the stage does not begin anew for it."""
    seen = message(Observation(**FIELDS, origin="web"), source="runtime", kind=EventType.OBSERVATION)
    foreign = replace(came(seen), key=OTHER.encode())
    stage = sealing(encoder, f"tenants: {{{OTHER}: {{intake: {{events_per_s: 1, burst: 3}}}}}}")
    (outputs,) = stage.process([foreign])
    assert [(one.topic, one.key) for one in outputs] == [(DEAD_LETTER, OTHER.encode()), (SEALED, TENANT.encode())]
    assert stage.sender(outputs) == TENANT
    overflow = Overflow("o", stage, lambda: 0.0, 0)
    overflow._found(PARTITION, Found(Counter(), None))
    for number in range(9):
        arrived = SimpleNamespace(**{**asdict(replace(foreign, offset=number)), "timestamp": NOW_MS / 1_000})
        chosen = overflow.choose(arrived)
        assert chosen is not None
        assert (chosen.way, chosen.tenant) == (Way.STRAIGHT, OTHER)  # as much as there is
        overflow.answered(arrived, chosen, outputs)
    overflow._lanes[PARTITION].wait(OTHER, 0.0)
    refused = overflow.choose(arrived)
    assert refused is not None
    assert refused.way is Way.REFUSED
    overflow.answered(arrived, refused, outputs)


def test_what_a_tenant_sends_in_nobody_s_lane_counts_for_it(encoder: Encoder) -> None:
    """Whichever key it gives its records, what is sealed for it uses up its quota."""
    seen = came(message(Observation(**FIELDS, origin="web"), source="runtime", kind=EventType.OBSERVATION))
    stage = sealing(encoder, "intake: {events_per_s: 1, burst: 3}")
    overflow = Overflow("o", stage, lambda: 0.0, 0)
    overflow._found(PARTITION, Found(Counter(), None))
    for key in (b"No Tenant!", OTHER.encode(), b"No Tenant!"):
        foreign = replace(seen, key=key)
        arrived = SimpleNamespace(**{**asdict(foreign), "timestamp": NOW_MS / 1_000})
        overflow.answered(arrived, overflow.choose(arrived), *stage.process([foreign]))
    arrived = SimpleNamespace(**{**asdict(came(message())), "timestamp": NOW_MS / 1_000})
    chosen = overflow.choose(arrived)
    assert chosen is not None
    assert chosen.way is Way.MOVED


def test_what_nobody_signed_is_not_counted_where_a_tenant_s_own_event_could_wait_for_it(encoder: Encoder) -> None:
    """As many as may be under way at once are left of the quota, or the signature is looked at first."""
    bent = replace(came(message()), value=b"{}")
    stage = sealing(encoder, "intake: {events_per_s: 1, burst: 12}")
    overflow = Overflow("o", stage, lambda: 0.0, 10)
    overflow._found(PARTITION, Found(Counter(), None))
    ways = [overflow.choose(SimpleNamespace(**{**asdict(bent), "timestamp": NOW_MS / 1_000})) for _ in range(100)]
    assert [chosen.way for chosen in ways if chosen] == [Way.STRAIGHT] * 2 + [Way.REFUSED] * 98
    own = overflow.choose(SimpleNamespace(**{**asdict(came(message())), "timestamp": NOW_MS / 1_000}))
    assert own is not None
    assert own.way is Way.STRAIGHT


def test_what_a_tenant_did_not_sign_makes_none_of_its_events_wait(encoder: Encoder) -> None:
    """Whoever may write to the topic and has no key of the tenant's fills no overflow that its events stand behind."""
    bent = came(message())
    document = orjson.loads(bent.value or b"")
    document["signatures"][0]["sig"] = "A" * 43 + "="
    bent = replace(bent, value=orjson.dumps(document))
    assert sealing(encoder).lane(bent) == TENANT
    assert not sealing(encoder).may_wait(bent, TENANT)


def test_an_event_without_a_key_counts_for_the_tenant_that_it_names(encoder: Encoder) -> None:
    """Leaving the record's key out is no way around a quota."""
    for structured in (False, True):
        keyless = replace(came(message(structured=structured)), key=None)
        assert sealing(encoder).lane(keyless) == TENANT
        assert sealing(encoder).may_wait(keyless, TENANT)


def another_reading(how: str) -> Record:
    """Return a genuine event without a key, in a form that could be read in another way, too."""
    text = "{" * 3_000 if how == "braces" else "Ana takes the early train."
    keyless = replace(came(message(Write(**FIELDS, content=text), structured=True)), key=None)
    document = orjson.loads(keyless.value or b"")
    if how == "payload":
        document["payload"] = "an extension attribute of its own"
    if how == "base64":
        document["data_base64"] = b64encode(orjson.dumps(document.pop("data"))).decode() + "\n"
    if how == "both":
        document["data_base64"] = b64encode(b"{}").decode()
    return replace(keyless, value=orjson.dumps(document))


@pytest.mark.parametrize("how", ["payload", "base64", "both", "braces", *sorted(refused_but_seen())])
def test_what_is_sealed_for_a_tenant_has_its_lane(encoder: Encoder, how: str) -> None:
    """No form of an event is read in one way by the quota and in another one by whoever seals it: that would be a way
    past one's own quota, and past one's own events that wait. So for what is refused and taints a session all the same.
    """
    event = replace(refused_but_seen()[how][0], key=None) if how in refused_but_seen() else another_reading(how)
    sealed_for = sealing(encoder).sender(sealing(encoder).process([event])[0])
    fits = len(event.value or b"") <= limits.RECORD_BYTES_MAX and event.topic == EVENTS
    assert sealed_for == (None if how == "both" else TENANT)
    assert sealing(encoder).lane(event) == (sealed_for if fits else None)


def test_a_command_never_waits(encoder: Encoder) -> None:
    """An operator who withdraws a noisy tenant's entries is not behind that tenant's events."""
    assert sealing(encoder).lane(replace(came(message()), topic=COMMANDS)) is None


def test_what_can_be_no_event_is_not_moved(encoder: Encoder) -> None:
    """It would not fit into the overflow; a dead letter, with its own budget, it becomes at once."""
    mine = came(message())
    stage = sealing(encoder)
    assert stage.lane(replace(mine, value=b"x" * (limits.RECORD_BYTES_MAX + 1))) is None
    assert stage.lane(replace(mine, value=None)) is None
    assert stage.lane(replace(mine, headers=mine.headers * 20)) is None
    assert stage.lane(replace(mine, key=b"No Tenant!")) is None
    assert stage.lane(replace(mine, key=None, value=b"{")) is None


def test_the_quota_is_that_of_the_policy_file(encoder: Encoder) -> None:
    """A tenant's override counts, null is no limit, and a watched stage has the same quotas."""
    stage = sealing(encoder, "tenants: {acme: {intake: {events_per_s: 7}}, globex: {intake: {events_per_s: null}}}")
    assert (stage.quota("acme"), stage.quota("globex")) == (Quota(7, 2_000), None)
    watched = ObservedBatch(stage, Watch("seal", Meters(), None))
    assert isinstance(watched, Overflowing)
    assert watched.quota("acme") == Quota(7, 2_000)
    assert watched.lane(came(message())) == TENANT


def late(offset: int, after: int | None = None, **fields: object) -> object:
    """Return a write that waited."""
    return replace(write(offset, **fields), waited=Waited(10**13 + offset, after))


def decided(rows: MemoryRows, screen: object, *events: object) -> list[object]:
    """Have *screen* process sealed events, and apply what it says; return the steps."""
    steps = []
    for number, event in enumerate(events):
        steps.append(screen.process(record(event, 100 + number), rows))
        apply(rows, steps[-1])
    return steps


def test_screen_goes_on_past_what_was_moved_and_decides_it_when_it_comes() -> None:
    """Intake offsets have no gap by it; the verdict names the intake place, the append there, and that it waited."""
    rows, screen = MemoryRows(), stage()
    steps = decided(rows, screen, write(0), marker(1), marker(2), write(3), late(1), write(4), late(2, after=1))
    verdicts = [step.verdict for step in steps if step.verdict is not None]
    assert [(one.intake, one.waited) for one in verdicts] == [
        ((EVENTS, SCREENED, offset), offset in (1, 2)) for offset in (0, 3, 1, 4, 2)
    ]
    assert verdicts[2].append_ms == write(1).position.append_ms
    assert [one.decided_ms for one in verdicts] == sorted(one.decided_ms for one in verdicts)
    assert ("waited" in verdicts[2].to_json(), "waited" in verdicts[0].to_json()) == (True, False)


def test_screen_knows_what_waited_and_was_decided() -> None:
    """A repetition from the overflow is one: nothing is sent, and nothing changes."""
    rows, screen = MemoryRows(), stage()
    decided(rows, screen, marker(0), marker(1), late(0), late(1, after=0))
    again = stage().process(record(late(0), 102), rows)
    assert (list(again.outputs), list(again.changes)) == ([], [])


def test_screen_passes_over_what_was_decided_before_it_was_moved() -> None:
    """An intake that is read again once a quota is lower moves what was decided straight: a repetition, by which no
    partition stops. What waits behind it is decided, and its place in the overflow counts."""
    rows, screen = MemoryRows(), stage()
    first, *_, again, behind = decided(rows, screen, write(0), write(1), marker(2), late(1), late(2, after=1))
    assert first.verdict is not None
    assert (again.verdict, list(again.outputs), len(again.changes)) == (None, [], 1)
    assert behind.verdict is not None
    once_more = stage().process(record(late(1), 300), rows)
    assert (list(once_more.outputs), list(once_more.changes)) == ([], [])


def test_screen_stops_where_one_that_waited_is_missing() -> None:
    """Each says which was moved before it; where a worker had found nothing waiting it says nothing, and goes on."""
    rows, screen = MemoryRows(), stage()
    decided(rows, screen, *(marker(offset) for offset in range(6)), late(1))
    with pytest.raises(GapError) as missing:
        screen.process(record(late(4, after=3), 200), rows)
    assert (missing.value.topic, missing.value.first, missing.value.last) == (OVERFLOW, 2, 3)
    assert screen.process(record(late(5), 201), rows).verdict is not None


def test_screen_knows_an_event_that_was_moved_twice_and_stops_where_its_place_holds_a_younger_one() -> None:
    """A group whose offsets expired reads its intake again, and what was over its quota is moved again, later: that is
    a repetition. An intake log that was made anew is none: its records were appended after every decision."""
    rows, screen = MemoryRows(), stage()
    decided(rows, screen, marker(0), marker(1), late(1))
    anew = 3 * 10**13
    again = screen.process(record(replace(late(1), waited=Waited(anew, None)), 200), rows)
    assert (list(again.outputs), list(again.changes)) == ([], [])
    younger = replace(late(1, append_ms=anew), waited=Waited(anew, None))
    with pytest.raises(StateError):
        screen.process(record(younger, 201), rows)


@settings(deadline=None)
@given(st.lists(st.sampled_from("sm"), min_size=1, max_size=12), st.data())
def test_whatever_waits_is_decided_once_and_in_its_order(ways: list[str], data: st.DataObject) -> None:
    """However straight events, moved ones and those that waited take turns, each intake offset has one verdict."""
    rows, screen, waiting, after, log = MemoryRows(), stage(), [], None, []
    for offset, way in enumerate(ways):
        if way == "m":
            log.append(marker(offset))
            waiting.append(late(offset, after))
            after = offset
        else:
            log.append(write(offset))
        while waiting and data.draw(st.booleans()):
            log.append(waiting.pop(0))
    log += waiting
    verdicts = [step.verdict for step in decided(rows, screen, *log) if step.verdict is not None]
    assert sorted(one.offset for one in verdicts) == list(range(len(ways)))
    assert [one.offset for one in verdicts if one.waited] == [n for n, way in enumerate(ways) if way == "m"]


def test_an_event_of_a_key_that_was_issued_a_moment_ago_waits_behind_its_tenants(encoder: Encoder) -> None:
    """*seal* looks for new keys where it meets an unknown one. Who asks whether an event may wait looks likewise, or it
    would go straight on, and be decided before those that came before it."""
    known = [Registry([])]
    stage = SealStage(
        lambda: KEYRING, lambda: known[0], encoder, PARTITIONS, refresh=lambda: known.__setitem__(0, REGISTRY)
    )
    assert stage.may_wait(came(message()), TENANT)
