"""The encoder against the reference implementation, with the real weights."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memsluice.encoder import DIMENSIONS, MODEL_ID, REVISION, Encoder, Precision, load_encoder
from memsluice.encoder.texts import CHARACTERS_MAX
from memsluice.errors import ConfigError
from memsluice.gate.detectors.memsad import proactive
from memsluice_lab.baselines import encoder_ratio, plain_encode

from .texts import ALL, MIXED, ODD

COSINE_MIN = 0.9999
"""What the product promises against the reference in float32 (bfloat16 products included)."""


@pytest.fixture(scope="module", params=["bf16", "fp32"])
def encoder(request: pytest.FixtureRequest) -> Any:
    """The encoder in each precision, whatever this CPU does best."""
    precision: Precision = request.param
    return load_encoder(precision=precision)


@pytest.fixture(scope="module")
def vectors(encoder: Any) -> NDArray[np.float32]:
    """What the encoder computes for ALL at once."""
    found: NDArray[np.float32] = encoder.encode(ALL)
    return found


@pytest.fixture(scope="module")
def reference() -> NDArray[np.float32]:
    """What sentence-transformers computes for ALL, in float32."""
    return plain_encode(ALL)


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine of each pair of rows, in float64."""
    left64, right64 = left.astype(np.float64), right.astype(np.float64)
    return (left64 * right64).sum(1) / np.linalg.norm(left64, axis=1) / np.linalg.norm(right64, axis=1)


def test_agrees_with_the_reference(encoder: Any, vectors: NDArray[np.float32], reference: NDArray[np.float32]) -> None:
    """Mixed lengths, nothing, 10,000 characters, cut texts, emoji, right-to-left, CJK: cosine at least 0.9999, and
    better than 0.999999 where products are float32.
    """
    found = cosines(vectors, reference)
    least = 0.999999 if encoder.kernel.precision == "fp32" else COSINE_MIN
    assert found.min() >= least, ALL[int(found.argmin())][:60]


def test_shape_type_and_length(vectors: NDArray[np.float32]) -> None:
    """float32 rows of 384, each of length 1."""
    assert vectors.shape == (len(ALL), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)


def test_nothing_gives_nothing(encoder: Any) -> None:
    """An empty batch is no error: shape (0, 384)."""
    assert encoder.encode([]).shape == (0, DIMENSIONS)


def test_order_is_kept_and_repeats_are_equal(encoder: Any) -> None:
    """Rows come in the order of the texts, whatever the sorting inside; the same text twice has the same row."""
    texts = [MIXED[index] for index in (5, 0, 33, 5, 12, 33, 5)]
    vectors = encoder.encode(texts)
    single = {text: encoder.encode([text])[0] for text in texts}
    for text, vector in zip(texts, vectors, strict=True):
        scores = {other: float(vector @ single[other]) for other in single}
        assert max(scores, key=scores.__getitem__) == text
    assert np.array_equal(vectors[0], vectors[3])
    assert np.array_equal(vectors[0], vectors[6])


def test_batch_mates_change_nothing(encoder: Any) -> None:
    """A text's vector does not depend on what is encoded beside it: bit for bit in bfloat16 on CPUs with a matrix
    unit (AMX), whose kernels this was built for, and to 0.99999 anywhere. Two runtimes batch differently and must
    decide alike.
    """
    texts = MIXED[::12] + ODD
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    backwards = encoder.encode(texts[::-1])[::-1]
    cpu = Path("/proc/cpuinfo")
    if encoder.kernel.precision == "bf16" and cpu.is_file() and "amx_bf16" in cpu.read_text():
        assert np.array_equal(together, alone)
        assert np.array_equal(together, backwards)
    assert cosines(together, alone).min() >= 0.99999
    assert cosines(together, backwards).min() >= 0.99999


def test_threads_share_one_encoder(encoder: Any) -> None:
    """Calls from several threads at once give what they give one after the other."""
    parts = [ALL[start::16] for start in range(4)]  # odd and long ones, too
    expected = [encoder.encode(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(encoder.encode, parts))
    for left, right in zip(expected, found, strict=True):
        assert cosines(left, right).min() >= 0.99999


def test_only_the_first_256_tokens_count(encoder: Any) -> None:
    """The model's config cuts at 256 tokens, not at the tokenizer file's 128: a word at 200 matters, one at 300 not."""
    words = ["river"] * 320
    changed_200, changed_300 = words.copy(), words.copy()
    changed_200[200] = changed_300[300] = "invoice"
    whole, at_200, at_300 = encoder.encode([" ".join(text) for text in (words, changed_200, changed_300)])
    assert not np.array_equal(whole, at_200)
    assert np.array_equal(whole, at_300)


def test_half_a_surrogate_pair_spoils_no_batch(encoder: Any) -> None:
    """A lone surrogate, which JSON can carry, is read as "?" and its batch mates are encoded as ever."""
    vectors = encoder.encode(["broken \ud83d text", MIXED[1], "broken ? text"])
    assert np.array_equal(vectors[0], vectors[2])
    assert float(vectors[1] @ encoder.encode([MIXED[1]])[0]) >= 0.99999


def test_a_text_beyond_the_limit_is_refused(encoder: Any) -> None:
    """Nothing is unbounded: a text of more than 2**20 characters is an error, not minutes of tokenising."""
    with pytest.raises(ConfigError, match="characters"):
        encoder.encode(["x" * (CHARACTERS_MAX + 1)])


def test_what_a_verdict_names(encoder: Any) -> None:
    """Model and revision are those that verdicts record."""
    seen: Encoder = encoder
    assert (seen.model_id, seen.revision, seen.dimensions) == (MODEL_ID, REVISION, DIMENSIONS)


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"precision": "int8"}])
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    """A setting that means nothing is a ConfigError at start-up."""
    with pytest.raises(ConfigError):
        load_encoder(**wrong)


def test_benchmark_arithmetic() -> None:
    """The side-by-side benchmark divides as it says. A clock that gives the plain call 8 s, and our loop 2 s at 64 and
    1 s at 256 texts a time, for 16 texts in each of two rounds: 2/s, 8/s and 16/s, ratios 4 and 8.
    """
    ticks = iter([0, 8, 10, 12, 20, 21] * 2)
    texts = MIXED[:12] + ODD[:4]
    found = encoder_ratio(texts, load_encoder(), rounds=2, clock=lambda: float(next(ticks)))
    assert (found.plain_per_s, found.own_per_s, found.ratio) == (2.0, {64: 8.0, 256: 16.0}, {64: 4.0, 256: 8.0})
    assert found.cosine_min >= COSINE_MIN


def test_the_probes_that_ship_are_what_the_encoder_makes_of_their_texts(encoder: Any) -> None:
    """The proactive defence compares with sixteen vectors in a file; whoever edits a text must make the file anew."""
    made = encoder.encode(list(proactive.PROBES))
    assert cosines(made, proactive.vectors().astype(np.float32)).min() > COSINE_MIN
