"""An encoder that gives something else than it declares stops what asked it: no text pays for it, and nothing lands."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from memsluice.client.requests import Session
from memsluice.encoder import load_encoder, register, registry, space_of_encoder
from memsluice.encoder.base import Encoder, encode, read
from memsluice.errors import ConfigError
from memsluice.gate.policy import model
from memsluice.topics.names import DEAD_LETTER, SEALED, STORE
from memsluice_lab.world_embedded import EmbeddedWorld

HERE = Session("t-declared", "planner", "ana", "s1")
NOTE = "The red bicycle stands behind the shed."
WIDTH = 8


class Odd:
    """An encoder of somebody's own; ``gives`` is what it returns in place of the vectors that it should."""

    def __init__(self, gives: Callable[[np.ndarray], Any] = lambda right: right, model_id: str = "acme/odd") -> None:
        self.model_id, self.revision, self.dimensions = model_id, "2", WIDTH
        self.gives = gives

    def encode(self, texts: Sequence[str]) -> Any:
        """Return the first axis, once a text, or what stands for that."""
        return self.gives(np.eye(1, WIDTH, dtype=np.float32).repeat(len(texts), axis=0))


class Reading(Odd):
    """One that reads wording, too."""

    def __init__(self, wordings: Callable[[int], Any]) -> None:
        super().__init__()
        self.wordings = wordings

    def read(self, texts: Sequence[str]) -> Any:
        """Return vectors and wordings."""
        return self.encode(texts), self.wordings(len(texts))


def with_nan(right: np.ndarray) -> np.ndarray:
    """Return the vectors with a last number that is none."""
    right[-1, -1] = np.nan
    return right


WRONG: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "too short": (lambda right: right[:, :4], r"float32 of shape \(1, 4\)"),
    "too few rows": (lambda right: right[:-1], r"float32 of shape \(0, 8\)"),
    "one vector alone": (lambda right: right[0], r"float32 of shape \(8,\)"),
    "longer numbers": (lambda right: right.astype(np.float64), r"float64 of shape \(1, 8\)"),
    "a list": (lambda right: right.tolist(), "list"),
    "nothing": (lambda right: None, "NoneType"),
    "no number": (with_nan, "a number that is not finite"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_not_as_declared_stops_the_stage_and_what_waits_is_decided_once_it_is_mended(wrong: str) -> None:
    """The error names the encoder, what it returned and what it declares. Nothing is sealed, dead-lettered or landed
    meanwhile, and the write lands when the encoder keeps its word again."""
    gives, returned = WRONG[wrong]
    odd = Odd(gives)
    world = EmbeddedWorld([HERE.tenant], odd, model.default())
    try:
        world.observe(HERE)
        world.write("user", HERE, NOTE)
        said = rf"acme/odd@2 returned {returned}; it declares finite float32 of shape \(1, 8\)"
        with pytest.raises(ConfigError, match=said):
            world.settle()
        assert not [one for topic in (SEALED, DEAD_LETTER, STORE) for one in world._runtime.read(topic)]
        odd.gives = Odd().gives
        world.settle()
        assert [entry.content for entry in world.ask(HERE, NOTE).entries] == [NOTE]
    finally:
        world.close()


def test_a_question_whose_vector_is_not_as_declared_says_so() -> None:
    """The reader hears of its encoder, not of the memory or of another encoder, and nothing is shown or published."""
    odd = Odd()
    world = EmbeddedWorld([HERE.tenant], odd, model.default())
    try:
        world.write("user", HERE, NOTE)
        world.settle()
        odd.gives = WRONG["too short"][0]
        with pytest.raises(ConfigError, match=r"acme/odd@2 returned float32 of shape \(1, 4\)"):
            world.ask(HERE, NOTE)
    finally:
        world.close()


@pytest.mark.parametrize("wordings", [lambda texts: [None] * (texts - 1), lambda texts: None, lambda texts: (None,)])
def test_wordings_are_as_many_as_texts(wordings: Callable[[int], Any]) -> None:
    """One too few would be another text's; what reads wording gives a list of them, and vectors as any encoder does."""
    with pytest.raises(ConfigError, match="read 2 texts and returned no pair of vectors and a list of as many"):
        read(Reading(wordings), ["a", "b"])
    right = Reading(lambda texts: [None] * texts)
    assert read(right, ["a", "b"])[1] == [None, None]
    right.gives = lambda vectors: None
    with pytest.raises(ConfigError, match="returned NoneType"):
        read(right, ["a", "b"])


def test_a_vector_without_length_and_no_text_at_all_are_as_declared() -> None:
    """Zeros say that the model finds nothing in a text, which is the text's own dead letter and stops nothing."""
    assert not encode(Odd(lambda right: right * 0), ["a"]).any()
    assert encode(Odd(), []).shape == (0, WIDTH)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x1b[31m", "\ud800", None])
def test_an_encoder_has_a_name_that_can_be_printed(monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    """It stands in every verdict, and tells one memory from another: an empty one tells nothing, and one with controls
    would draw on a terminal. Who registered it is told by what setting; who hands it over is told, too."""
    monkeypatch.setattr(registry, "_LOADERS", dict(registry._LOADERS))
    register("odd", lambda setting, running: Odd(model_id=name))
    with pytest.raises(ConfigError, match=r"'odd': the encoder has the model_id .* a name that can be printed"):
        load_encoder("odd")
    with pytest.raises(ConfigError, match="a name that can be printed"):
        space_of_encoder(Odd(model_id=name))


@pytest.mark.parametrize("dimensions", [7, 0, 4_000])
def test_an_encoder_that_nobody_registered_has_an_even_length_too(dimensions: int) -> None:
    """What a program hands to a memory itself is held to the same rule as what a setting names."""
    odd: Encoder = Odd()
    odd.dimensions = dimensions  # type: ignore[misc]
    with pytest.raises(ConfigError, match=f"acme/odd gives vectors of {dimensions} dimensions"):
        space_of_encoder(odd)
