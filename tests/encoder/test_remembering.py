"""Equal texts of one writer are encoded once, within bounds; nobody gains or loses by what somebody else wrote."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from memsluice.encoder import remembering as module
from memsluice.encoder.remembering import Remembering, Writer


class Counting:
    """An encoder that keeps what it was given; a text's vector is its length."""

    model_id, revision, dimensions = "counting", "1", 2

    def __init__(self) -> None:
        self.given: list[str] = []
        self.calls: list[int] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), 2)."""
        if "fails" in texts:
            raise ValueError("fails")
        self.given += texts
        self.calls.append(len(texts))
        return np.array([[len(text), 1] for text in texts], np.float32)


def lengths(remembering: Remembering, *said: tuple[str, str]) -> list[float]:
    """Read some texts, each with its tenant, and return the first component of each vector."""
    return [float(vector[0]) for vector, _ in remembering.read([((who, "k", "ada"), text) for who, text in said])]


def test_a_text_is_encoded_once_and_each_gets_its_own() -> None:
    """What is known and what is new stand in the order in which they were asked for, in one call and in two."""
    encoder = Counting()
    remembering = Remembering(encoder)
    assert lengths(remembering, ("acme", "a"), ("acme", "bb")) == [1, 2]
    assert lengths(remembering, ("acme", "ccc"), ("acme", "bb"), ("acme", "dddd"), ("acme", "a")) == [3, 2, 4, 1]
    assert encoder.given == ["a", "bb", "ccc", "dddd"]


def test_an_equal_text_of_one_call_is_encoded_once_and_its_vector_is_nobodys_to_change() -> None:
    """What is remembered and what is handed out is one array: whoever wrote to it would change what comes later."""
    encoder = Counting()
    remembering = Remembering(encoder)
    assert lengths(remembering, ("acme", "a"), ("acme", "a"), ("other", "a")) == [1, 1, 1]
    assert encoder.given == ["a", "a"]
    ((vector, _),) = remembering.read([(("acme", "k", "ada"), "a")])
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 7


@pytest.mark.parametrize("other", [("other", "k", "ada"), ("acme", "k", "bob"), ("acme", "l", "ada")])
def test_what_somebody_else_wrote_saves_nobody_anything(other: Writer) -> None:
    """By how long an event takes nobody learns what others write; half a surrogate pair is a text like others."""
    encoder = Counting()
    remembering = Remembering(encoder)
    own = ("acme", "k", "ada")
    remembering.read([(own, "a\ud83d")])
    remembering.read([(other, "a\ud83d"), (own, "a\ud83d")])
    assert encoder.given == ["a\ud83d"] * 2


def test_a_writer_pushes_out_its_own_texts_alone_and_the_one_least_asked_for() -> None:
    """Whoever writes much costs others nothing, and what is asked for again stays."""
    encoder = Counting()
    remembering = Remembering(encoder, each_max=2, writers_max=2)
    lengths(remembering, ("other", "kept"), ("acme", "a"), ("acme", "bb"))
    lengths(remembering, ("acme", "a"))
    lengths(remembering, ("acme", "ccc"))
    encoder.given.clear()
    assert lengths(remembering, ("other", "kept"), ("acme", "a"), ("acme", "bb")) == [4, 1, 2]
    assert encoder.given == ["bb"]


def test_writers_are_bounded_and_give_way_in_turn() -> None:
    """A deployment of many writers takes no more memory than one of few."""
    encoder = Counting()
    remembering = Remembering(encoder, writers_max=2)
    for tenant in ("one", "two", "three"):
        lengths(remembering, (tenant, "a"))
    encoder.given.clear()
    lengths(remembering, ("three", "a"), ("two", "a"), ("one", "a"))
    assert len(encoder.given) == 1


def test_what_fails_is_not_remembered() -> None:
    """The stage asks again text by text, and then each has its vector."""
    encoder = Counting()
    remembering = Remembering(encoder)
    with pytest.raises(ValueError, match="fails"):
        lengths(remembering, ("acme", "a"), ("acme", "fails"))
    assert lengths(remembering, ("acme", "a")) == [1]


def test_long_texts_are_not_all_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than so many characters, or one text, are the encoder's at a time, in order, whatever a batch has: it
    keeps the inner states of all of them. Each gets its own all the same."""
    monkeypatch.setattr(module, "AT_ONCE_CHARS_MAX", 5)
    encoder = Counting()
    texts = ["a", "bb", "cc", "d", "eeeeeeeee", "f"]
    assert lengths(Remembering(encoder), *(("acme", text) for text in texts)) == [1, 2, 2, 1, 9, 1]
    assert (encoder.given, encoder.calls) == (texts, [3, 1, 1, 1])
