"""The head on the encoder's fourth layer: what a file says is what it computes, whatever is read beside a text."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch

from memsluice.encoder import load_encoder, loop
from memsluice.encoder import wording as heads
from memsluice.encoder.base import WordingReader, read
from memsluice.encoder.loop import MiniLMEncoder
from memsluice.encoder.reading import TOKENS_MAX
from memsluice.encoder.wording import Head
from memsluice.errors import ConfigError

from .texts import sentence

SHAPES = {"project": (384, 128), "first": (256, 32), "second": (32, 1)}
LONG = " ".join(f"{sentence(number, 12)}." for number in range(60))
TEXTS = ["The boat lies at pier four.", LONG, "", "Nine to five. Send it to Eve.", "日本語の短い文です。", "ok", LONG]


def arrays(seed: int = 1) -> dict[str, np.ndarray]:
    """What a head's file holds, by chance."""
    rng, found = np.random.default_rng(seed), dict[str, np.ndarray]()
    for name, shape in SHAPES.items():
        found[name] = rng.integers(-127, 128, shape).astype(np.int8)
        found[f"{name}_scale"] = rng.uniform(5e-4, 2e-3, shape[1]).astype(np.float32)
        found[f"{name}_bias"] = rng.normal(0, 0.1, shape[1]).astype(np.float32)
    return found


def file(some: dict[str, np.ndarray]) -> bytes:
    """The file itself."""
    out = BytesIO()
    np.savez_compressed(out, **some)
    return out.getvalue()


@pytest.fixture(scope="module")
def encoder() -> Any:
    """The encoder with a head by chance: what is tested holds of any."""
    found = load_encoder(threads=1, precision="fp32")
    assert isinstance(found, MiniLMEncoder)
    found._head = heads.read(file(arrays()))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head by chance may show anything: what is not about SURE does not hang on it."""
    monkeypatch.setattr(loop, "SURE", float("inf"))


def test_a_unit_s_log_odds_by_hand() -> None:
    """The greatest and the mean of a unit's projected tokens, through both layers; a token may be of two units."""
    some, head = arrays(), heads.read(file(arrays()))
    states = np.random.default_rng(2).normal(0, 1, (7, 384)).astype(np.float32)
    units = [[0, 1, 2], [5], [0, 1, 2, 3, 4, 5, 6]]

    def gelu(rows: np.ndarray) -> np.ndarray:
        return torch.nn.functional.gelu(torch.from_numpy(rows)).numpy()

    def through(name: str, rows: np.ndarray) -> np.ndarray:
        matrix = some[name].astype(np.float64) * some[f"{name}_scale"]
        return rows @ matrix + some[f"{name}_bias"]

    projected = gelu(through("project", states))
    pooled = [np.concatenate((projected[unit].max(0), projected[unit].mean(0))) for unit in units]
    wanted = through("second", gelu(through("first", np.array(pooled))))[:, 0]
    tokens, ends = torch.tensor([token for unit in units for token in unit]), [3, 4, 11]
    found = head.logits(torch.from_numpy(states), tokens, ends)
    assert np.allclose(found.numpy(), wanted, atol=1e-4)


def test_one_line_is_enough() -> None:
    """A unit's log-odds do not depend on the other units of its text, however many."""
    head = heads.read(file(arrays()))
    states = torch.from_numpy(np.random.default_rng(3).normal(0, 1, (40, 384)).astype(np.float32))
    alone = head.logits(states, torch.tensor([4, 5, 6]), [3])
    among = head.logits(states, torch.arange(40), [4, 7, 20, 40])
    assert torch.equal(alone[0], among[1])


def test_batch_mates_change_nothing(encoder: MiniLMEncoder) -> None:
    """A text shows the same alone, among others, twice and in another place: *seal* may batch as it likes."""
    together = encoder.read(TEXTS)[1]
    assert [encoder.read([text])[1][0] for text in TEXTS] == together
    assert encoder.read(TEXTS[::-1])[1][::-1] == together
    assert together[1] == together[-1]


def test_vectors_are_the_encoder_s(encoder: MiniLMEncoder) -> None:
    """Reading gives the very vectors that encoding gives: what a reader searches with and *seal* computes agree.

    Encoding reads the beginning of a long text alone, unless that has fewer tokens than count.
    """
    words, blanks, solid = ("x" * 200 + " ") * 40, "end" + " " * 3_000 + "of it", "boat/" * 500
    texts = [*TEXTS, words, blanks, solid, LONG[:2_500].replace(" ", " \u0301É ")]
    assert np.array_equal(encoder.read(texts)[0], encoder.encode(texts))


@pytest.mark.parametrize("code", ["&#{};", "\\u{:04x}", "%{:02X}"])
def test_what_codes_spell_is_read_and_placed(encoder: MiniLMEncoder, code: str) -> None:
    """The wording of a text in codes is that of the text which a reader sees, in the places of the one that was
    written; its vector is of what was written."""
    said = "Send it all to Eve"
    written = "Nine to five. " + "".join(code.format(ord(letter)) for letter in said)
    plain, coded = encoder.read(["Nine to five. " + said, written])[1]
    assert plain is not None
    assert coded is not None
    assert (coded.logit, coded.read) == (plain.logit, len(written))
    assert (coded.first, coded.end) == (
        plain.first,
        len(written) if plain.end == len("Nine to five. " + said) else plain.end,
    )
    assert np.array_equal(encoder.read([written])[0], encoder.encode([written]))


def test_what_shows_next_to_nothing_at_once_is_not_read_again(
    encoder: MiniLMEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text costs one pass where no unit shows more than DOUBT; else short windows are read, too, and what they show
    counts. A text that is one short window is not read twice."""
    again, forward = list[int](), encoder._forward

    def counted(pieces: Any, found: Any = None, joint: Any = frozenset()) -> Any:
        again.extend(pieces if found is None else ())
        return forward(pieces, found, joint)

    monkeypatch.setattr(encoder, "_forward", counted)
    texts = ["A boat.", "The train was late again. " * 20, "The train was late again. " * 80]
    alone = [encoder.read([text])[1][0] for text in texts]
    shown = dict[float, Any]()
    for doubt in (100.0, -100.0):
        monkeypatch.setattr(loop, "DOUBT", doubt)
        again.clear()
        shown[doubt] = encoder.read(texts)[1]
        assert sorted(again) == ([] if doubt > 0 else [1, 2])
    assert [shown[100.0][at] == shown[-100.0][at] for at in range(3)] == [True, False, False]
    assert alone[0] == shown[100.0][0]


def test_what_is_sure_at_once_is_not_read_again(encoder: MiniLMEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of which a unit shows SURE shows just this, whatever else in it is doubted; else short windows count."""
    ((_, states, units),) = encoder.states([LONG])
    (fitted,) = encoder._judge(iter([(0, states)]), {0: units}).values()
    (one,) = encoder._tokens([LONG])
    (at_once,) = encoder._judge(encoder._forward({0: one.pieces(loop.VECTOR_TOKENS_MAX)}), {0: units}).values()
    monkeypatch.setattr(loop, "DOUBT", -100.0)
    for sure, expected in ((float(at_once.max()) - 0.1, at_once), (float(at_once.max()) + 0.1, fitted)):
        monkeypatch.setattr(loop, "SURE", sure)
        shown = encoder.read([LONG])[1][0]
        assert shown is not None
        assert shown.logit == pytest.approx(expected.max(), abs=2e-3)
    assert abs(at_once.max() - fitted.max()) > 0.01


RUN_ON = "the kettle is blue and " * 24
DOUBTED = {
    "short units": LONG[:900],
    "longer than a vector": LONG,
    "a unit of several windows": f"Nine to five. {RUN_ON}",
    "its own whole a unit": "Nine to five. Ünlü bir söz. " * 6,
    "longer than is read": "Send it to Eve. The boat lies at pier four. " * 400,
}


@pytest.mark.parametrize("text", DOUBTED.values(), ids=DOUBTED)
def test_a_unit_read_again_shows_what_training_saw_of_it(
    encoder: MiniLMEncoder, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Where every unit is doubted, a text shows what its worst unit shows in the windows that the models are fitted
    on; where one is, that unit shows just this, of no more windows than have its tokens, and the others what they
    showed at once."""
    ((_, states, units),) = encoder.states([text])
    (one,) = encoder._tokens([text])
    (fitted,) = encoder._judge(iter([(0, states)]), {0: units}).values()
    (at_once,) = encoder._judge(encoder._forward({0: one.pieces(loop.VECTOR_TOKENS_MAX)}), {0: units}).values()
    monkeypatch.setattr(loop, "DOUBT", -100.0)
    whole = encoder.read([text])[1][0]
    assert whole is not None
    assert whole.logit == pytest.approx(fitted.max(), abs=2e-3)
    for at in {
        int(at_once.argmax()),
        int(at_once.argmin()),
        max(range(len(units)), key=lambda n: len(units[n].tokens)),
    }:
        alone = np.full(len(units), -200.0, np.float32)
        alone[at] = 0.0
        doubted = one.doubted(alone)
        assert doubted is not None
        assert doubted.unsure == [at]
        own = {token for window, _ in doubted.pieces for token in range(window.own, window.until)}
        assert own >= set(units[at].tokens)
        assert all({*range(window.own, window.until)} & {*units[at].tokens} for window, _ in doubted.pieces)
        (again,) = encoder._judge(encoder._forward({0: doubted.pieces}), {0: doubted.units}).values()
        assert again[0] == pytest.approx(fitted[at], abs=1e-3)


def test_one_doubted_unit_changes_what_a_text_shows(encoder: MiniLMEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text shows the greater of what its doubted unit shows in a short window and what the others did at once; so
    does one whose codes spell it."""
    monkeypatch.setattr(loop, "DOUBT", 100.0)
    ((_, states, units),) = encoder.states([LONG])
    (fitted,) = encoder._judge(iter([(0, states)]), {0: units}).values()
    (one,) = encoder._tokens([LONG])
    (at_once,) = encoder._judge(encoder._forward({0: one.pieces(loop.VECTOR_TOKENS_MAX)}), {0: units}).values()
    second, worst = np.sort(at_once)[-2:]
    monkeypatch.setattr(loop, "DOUBT", float((second + worst) / 2))
    coded = LONG.replace("a", "&#97;", 1)
    for shown in encoder.read([LONG, coded])[1]:
        assert shown is not None
        assert shown.logit == pytest.approx(max(fitted[int(at_once.argmax())], second), abs=2e-3)


def test_letters_in_other_dress_are_read_as_plain_ones(encoder: MiniLMEncoder) -> None:
    """Full-width letters, and Cyrillic ones in Latin words, show what the plain ones show."""
    said = "Send it all to Eve"
    wide = "".join(chr(ord(one) + 0xFEE0) if one.isalpha() else one for one in said)
    alike = said.replace("e", "\u0435").replace("o", "\u043e")
    plain, *others = encoder.read([said, wide, alike])[1]
    assert others == [plain, plain]


def test_what_is_shown_lies_in_the_text(encoder: MiniLMEncoder) -> None:
    """The worst unit is characters of the text, all of it was read, and a text without a token shows nothing."""
    for text, wording in zip(TEXTS, encoder.read(TEXTS)[1], strict=True):
        assert (wording is None) is (text == "")
        if wording is not None:
            assert 0 <= wording.first < wording.end <= len(text) == wording.read


def test_a_text_is_read_to_the_limit_and_says_how_far(encoder: MiniLMEncoder) -> None:
    """What stands behind the last token that is read is not judged, and the verdict can tell: ``read`` says where."""
    words = "hour " * (TOKENS_MAX + 500)
    (wording,) = encoder.read([words])[1]
    assert wording is not None
    assert wording.read == 5 * TOKENS_MAX - 1
    assert wording.end <= wording.read + 5


def test_an_encoder_without_a_head_shows_nothing() -> None:
    """Another model gives vectors alone, and the n-grams judge by themselves."""

    class Plain:
        model_id, revision, dimensions = "plain", "1", 2

        def encode(self, texts: Any) -> np.ndarray:
            return np.full((len(texts), 2), 0.5, np.float32)

    assert not isinstance(Plain(), WordingReader)
    assert read(Plain(), ["a", "b"])[1] == [None, None]


@pytest.mark.parametrize("broken", [b"", b"PK\x03\x04", file({"project": np.zeros(3, np.int8)}), file({})])
def test_a_file_that_is_no_head_is_said_so(broken: bytes) -> None:
    """One sentence of ours, and no half-read model."""
    with pytest.raises(ConfigError, match="cannot be read"):
        heads.read(broken)


def test_a_head_has_the_shapes_that_it_says() -> None:
    """float32 matrices of the levels times the scale of their column."""
    head = heads.read(file(arrays()))
    assert isinstance(head, Head)
    assert {name: tuple(weight.shape) for name, (weight, _) in head.weights.items()} == SHAPES
    weight, _ = head.weights["second"]
    assert weight[3, 0].item() == pytest.approx(float(arrays()["second"][3, 0]) * float(arrays()["second_scale"][0]))
