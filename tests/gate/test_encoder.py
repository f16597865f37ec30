"""Vectors of two encoders are compared nowhere: the memory begins anew, says so, and a restart sees the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.build import TENANT, Core, axis, sealed

from memsluice.envelope.codec import Vector
from memsluice.envelope.space import DEFAULT_MODEL
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Action
from memsluice.events.names import EventType
from memsluice.gate.checks import encoder
from memsluice.gate.detectors.memsad.check import check
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.numeric.vector_set import Kept, Limits
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.model import MemsadPolicy, default
from memsluice.gate.state.kinds import FIRST_ENCODER, EncoderRow

SMALL, OTHER = "acme/small@1", "acme/other@1"
POLICY = default().default
BOUNDS = (POLICY.detect.questions, POLICY.detect.entries)


def unit(number: int, dimensions: int) -> Vector:
    """Return an axis of a space."""
    return np.eye(1, dimensions, number % dimensions, dtype=np.float32)[0]


def core() -> Core:
    """A tenant that did nothing yet, with both detectors' memories."""
    return Core(memory=Memory.empty(*BOUNDS))


def step(one: Core, number: int, model: str, dimensions: int) -> list[str]:
    """Have one more event of an encoder decided, a recall or a write; return the codes that were found."""
    vector = unit(number, dimensions)
    if number % 2:
        found = one.recall(f"Where is thing {number}?", vector=vector, model=model)
    else:
        found = one.write("operator", f"Thing {number} lies on shelf {number}.", vector=vector, model=model)
    return [finding.code for finding in found.verdict.findings]


def restarted(one: Core) -> None:
    """Assert that what is decoded from the rows is what the decisions left in memory."""
    memory, loaded = one.memory, Memory.load(one.rows, TENANT, *BOUNDS)
    assert memory is not None
    for mine, theirs in ((memory.questions, loaded.questions), (memory.entries, loaded.entries)):
        assert [thing.number for thing in mine] == [thing.number for thing in theirs]
        assert all(np.allclose(mine.vector(at), theirs.vector(at), atol=1e-3) for at in range(len(mine)))
    assert memory.surplus == loaded.surplus
    assert memory.questions.buffer.matrix.shape[1] == loaded.questions.buffer.matrix.shape[1]
    memsad = MemsadState.load(one.rows, TENANT, one.policy.memsad)
    for name in ("numbers", "slots", "askers", "encoder", "lexical"):
        assert getattr(memsad, name) == getattr(one.memsad, name), name
    assert memsad.scores.dumped() == one.memsad.scores.dumped()
    assert memsad.history.shape == one.memsad.history.shape
    assert memsad.reference.shape == one.memsad.reference.shape


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([(DEFAULT_MODEL, 384), (SMALL, 96), (OTHER, 384)]), st.integers(1, 5)),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_encoders_follow_one_another_a_restart_sees_the_same(turns) -> None:
    """Each turn of an encoder begins an empty memory, is told once, where there was something to forget, and compares
    with nothing of another turn, also not of its own earlier one; loading the rows gives the same at every event."""
    one, number, last, seen = core(), 0, (DEFAULT_MODEL, 384), False
    for turn, count in turns:
        for _ in range(count):
            codes = step(one, number, *turn)
            told = turn != last and (seen or one.memsad.encoder.turn > 1)
            assert codes.count(encoder.CHANGED) == told
            assert (one.memsad.encoder.model, one.memsad.encoder.dimensions) == turn
            restarted(one)
            number, last, seen = number + 1, turn, True
    assert one.memory is not None
    assert len(one.memory.questions) <= number


def test_the_default_encoder_writes_no_row_and_rows_without_one_are_its() -> None:
    """State of before there was a choice stays as it is, to the last byte; an event that names no model is as old."""
    one = core()
    for number in range(6):
        assert encoder.CHANGED not in step(one, number, DEFAULT_MODEL if number % 3 else "", 384)
    assert one.memsad.encoder == FIRST_ENCODER
    assert not [key for key in one.rows if b"\0encoder\0" in key]


def test_rows_of_the_last_encoder_are_deleted_a_few_at_a_time() -> None:
    """No event has to write thousands of rows: those left over go with the events that follow."""
    one = core()
    for number in range(100):
        step(one, number, DEFAULT_MODEL, 384)
    old = {key for key in one.rows if b"\0detect\0" in key and key.split(b"\0")[2][:1] in (b"q", b"e", b"v")}
    for number in range(100, 112):
        step(one, number, SMALL, 96)
    assert not old & set(one.rows)
    restarted(one)


def test_a_command_lands_nothing_that_no_question_finds() -> None:
    """Releasing, replaying, promoting, renewing, or lifting a label of what another encoder made is refused, and what
    only takes away is not."""
    old = sealed("user", EventType.WRITE, 0, vector=axis(0), content="A note.")
    now = EncoderRow(model=SMALL, dimensions=96, turn=1)
    for action in Action:
        found = encoder.against(now, action, old)
        assert (found is not None) is (action in encoder.LANDING), action
        assert found is None or (found.code, found.decision) == ("encoder.carried", Decision.REJECT)
        assert encoder.against(FIRST_ENCODER, action, old) is None
        assert encoder.against(now, action, None) is None


@pytest.mark.parametrize("variant", ["composite", "weighted"])
def test_probes_of_the_default_encoder_judge_no_other(variant: str) -> None:
    """The published probes are vectors of one encoder: another one's entries are not compared with them, and the
    verdict says that this part is missing."""
    policy = MemsadPolicy(variant=variant)
    state = MemsadState.empty(policy)
    foreign = state.anew(core_rows(), EncoderRow(model=OTHER, dimensions=384, turn=1))
    for one, missing in ((state, False), (foreign, True)):
        _, found = check(one, axis(0), policy, Decision.QUARANTINE, "A note.")
        assert ("memsad.no_probes" in {finding.code for finding in found}) is missing


def core_rows():
    """Return a tenant's rows in one decision."""
    from tests.gate.build import MemoryRows

    from memsluice.gate.state.rows import TenantRows

    return TenantRows(MemoryRows(), TENANT, 0)


@pytest.mark.parametrize("dimensions", [2, 32, 96, 768, 3_072])
@pytest.mark.parametrize("size", [40, 700])
def test_the_nearest_of_any_dimension_are_the_nearest(dimensions: int, size: int) -> None:
    """Compiled code takes the length from the vectors: shorter than the part that is looked at first, and longer than
    any 32-bit sum of 384 products, the nearest are still those of a comparison in full."""
    rng = np.random.default_rng(dimensions)
    whole = rng.normal(size=(size, dimensions))
    whole = (whole / np.linalg.norm(whole, axis=1, keepdims=True)).astype(np.float32)
    kept = Kept.of(list(range(size)), list(whole), dimensions)
    probe = whole[3]
    search = kept.near(probe, np.zeros(size, np.int64), np.zeros(size, np.bool_), Limits(10, 10, 10))
    assert search.take(10) == 10
    steps = np.rint((whole.astype(np.float64) @ probe.astype(np.float64)) * 1e5)
    assert list(search.found[0]) == sorted(range(size), key=lambda at: (-steps[at], -at))[:10]
    assert kept.twin(probe, 0.97) is not None
