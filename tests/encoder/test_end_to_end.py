"""Two encoders from the write to the recall; and a memory that was made with the other one."""

from pathlib import Path

import pytest

from memsluice.client.requests import Session
from memsluice.deployment.home import Home
from memsluice.encoder import Encoder, load_encoder, space_of_encoder
from memsluice.encoder.remembering import Remembering
from memsluice.envelope.space import DEFAULT
from memsluice.errors import ConfigError
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.gate.policy import model
from memsluice.runtimes.assembly import Assembly
from memsluice.runtimes.embedded.runtime import SEAL
from memsluice.topics.names import DEAD_LETTER
from memsluice_lab.world_embedded import EmbeddedWorld

HERE = Session("t-encoder", "planner", "ana", "s1")
NOTES = (
    "The greenhouse is watered on Mondays.",
    "Invoices are sent to the office in Rowan Street.",
    "The red bicycle stands behind the shed.",
)


def encoder(name: str, tiny: Path) -> Encoder:
    """Return the default encoder, or the tiny one."""
    return load_encoder("minilm" if name == "minilm" else f"sentence-transformers:{tiny}?device=cpu", threads=1)


def noted(world: EmbeddedWorld) -> list[str]:
    """Write the notes in an opened session, and return their event ids."""
    world.observe(HERE)
    ids = [world.write("user", HERE, note) for note in NOTES]
    world.settle()
    return ids


@pytest.mark.parametrize("name", ["minilm", "tiny"])
def test_what_was_written_is_recalled(name: str, tiny: Path) -> None:
    """Write, screen, land, recall: with either encoder the note that is asked for in its own words is the nearest, and
    verdict, admission and store name the model."""
    chosen = encoder(name, tiny)
    world = EmbeddedWorld([HERE.tenant], chosen, model.default())
    try:
        ids = noted(world)
        found = world.ask(HERE, NOTES[1])
        assert {entry.content for entry in found.entries} == set(NOTES)
        nearest = max(found.entries, key=lambda entry: entry.similarity)
        assert (nearest.content, nearest.similarity) == (NOTES[1], pytest.approx(1, abs=2e-3))
        mine = space_of_encoder(chosen)
        assert world.said(HERE.tenant, ids[1]).model == nearest.admission.model == mine.model
        assert world.store.space() == mine
        assert (mine == DEFAULT) is (name == "minilm")
    finally:
        world.close()


def test_a_question_of_another_encoder_is_refused_before_anything_is_shown(tiny: Path) -> None:
    """A reader with another encoder than the gate's is told both names and what to do, and shown nothing."""
    world = EmbeddedWorld([HERE.tenant], encoder("tiny", tiny), model.default())
    try:
        noted(world)
        world._encoder = encoder("minilm", tiny)
        with pytest.raises(ConfigError) as told:
            world.ask(HERE, NOTES[0])
        assert all(part in str(told.value) for part in ("tiny-96@", "all-MiniLM-L6-v2@", "MEMSLUICE_ENCODER"))
    finally:
        world.close()


def test_a_home_that_another_encoder_filled_does_not_start(tiny: Path, tmp_path: Path) -> None:
    """The embedded runtime says so at its start: nothing is read, sealed or landed meanwhile. An empty home starts with
    any encoder."""
    assembly = Assembly.at(Home.at(tmp_path))
    world = EmbeddedWorld([HERE.tenant], encoder("tiny", tiny), model.default())
    store = world.store
    try:
        assembly.embedded(encoder("minilm", tiny), store).close()
        noted(world)
        assembly.embedded(encoder("tiny", tiny), store).close()
        with pytest.raises(ConfigError, match="publish the entries there again"):
            assembly.embedded(encoder("minilm", tiny), store)
    finally:
        world.close()


def test_an_encoder_that_changes_in_mid_stream_lands_nothing_that_nobody_finds(tiny: Path) -> None:
    """One *seal* of two has another encoder: *screen* says that the memory begins anew, and compares nothing. The store
    refuses what no question could find, as a dead letter with its bytes, and *seal* refuses a recall that searched with
    the other one. What had landed is found as before."""
    world = EmbeddedWorld([HERE.tenant], encoder("minilm", tiny), model.default())
    try:
        noted(world)
        world.ask(HERE, NOTES[0])
        seal = world._runtime._batched[SEAL]
        before = seal._encoder
        seal._encoder, seal._model = Remembering(encoder("tiny", tiny)), space_of_encoder(encoder("tiny", tiny)).model
        late = world.write("user", HERE, "The bicycle was sold.")
        said = world.said(HERE.tenant, late)
        seal._encoder, seal._model = before, DEFAULT.model
        changed = [finding for finding in said.findings if finding.code == "encoder.changed"]
        assert [one.detail["forgotten"] > 0 for one in changed] == [True]
        letters = list(world._runtime.read(DEAD_LETTER))
        told = [dict(one.headers)[DEAD_LETTER_HEADER] for one in letters]  # the recall was sealed after the change
        assert [code in said for code, said in zip((b"malformed", b"store_refused"), told, strict=True)] == [True] * 2
        assert {entry.content for entry in world.ask(HERE, NOTES[0]).entries} == set(NOTES)
    finally:
        world.close()
