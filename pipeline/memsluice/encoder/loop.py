"""The encoder the product runs: tokenise, sort, pack, encode, put back in order."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from memsluice.encoder.base import Precision
from memsluice.encoder.batching import batches, distinct
from memsluice.encoder.minilm import MiniLM
from memsluice.encoder.reading import TOKENS_MAX, Unit, Window, begins_of, units_of, windows
from memsluice.encoder.texts import encodable, legible
from memsluice.encoder.weights import DIMENSIONS, MODEL_ID, REVISION, TOKENIZER_FILE, WEIGHTS_FILE
from memsluice.encoder.wording import WHOLE_TOKENS_MAX, Head, shipped
from memsluice.envelope.seals import Wording
from memsluice.errors import ConfigError
from memsluice.events.codes import Reading

BATCH_TOKENS_MAX = 1024  # larger batches leave the caches: measured slower, and they bound memory at about 20 MiB
BEGINNING_CHARS = 2_048
"""Characters that nearly always hold a vector's tokens; where they do not, the whole text is read."""
VECTOR_TOKENS_MAX = 254
"""Tokens that a vector is made from, without [CLS] and [SEP]."""
LOGIT_DIGITS = 3
Piece = tuple[Window, list[int]]
"""A window, and the ids that the model is given for it."""

_CPU_FLAGS = Path("/proc/cpuinfo")


class Read(NamedTuple):
    """A text whose tokens were read: its number, and their states, (T, 384)."""

    number: int
    states: Tensor


class Tokens(NamedTuple):
    """A text as it is read for its wording: its units, its windows, and how many of its characters are read."""

    units: list[Unit]
    pieces: list[Piece]
    read: int


class MiniLMEncoder:
    """all-MiniLM-L6-v2 on the CPU; see :class:`memsluice.encoder.base.Encoder`.

    A text's vector does not depend on what is encoded beside it, nor on its place; ``precision`` says in which
    numbers the products were computed ("bf16" or "fp32").
    """

    model_id = MODEL_ID
    revision = REVISION
    dimensions = DIMENSIONS

    def __init__(self, weights: Path, *, threads: int | None = None, precision: Precision = "auto") -> None:
        if threads is not None:
            if threads < 1:
                raise ConfigError(f"encoder threads must be at least 1, not {threads}")
            torch.set_num_threads(threads)
        if precision == "auto":
            precision = "bf16" if _multiplies_bf16() else "fp32"
        if precision not in ("bf16", "fp32"):
            raise ConfigError(f"encoder precision {precision!r} is not one of auto, bf16, fp32")
        self.precision = precision
        self._model = MiniLM(weights / WEIGHTS_FILE, torch.bfloat16 if precision == "bf16" else torch.float32)
        self._tokenizer = Tokenizer.from_file(str(weights / TOKENIZER_FILE))
        self._tokenizer.no_padding()  # the published file pads and cuts at 128, the published config says 256
        self._tokenizer.enable_truncation(TOKENS_MAX + 2)
        self._head: Head | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 (len(texts), 384), L2-normalised rows in the order of ``texts``.

        Identical texts are encoded once. Text beyond 256 tokens is ignored, as the model's config says; halves of
        surrogate pairs, which no UTF-8 can carry, count as "?".

        Raises :class:`ConfigError` for a text of more than 2**20 characters: limits are for the caller to check.
        """
        wanted, places = distinct(texts)
        found = np.empty((len(wanted), DIMENSIONS), dtype=np.float32)
        self._embed(wanted, found, range(len(wanted)))
        return found[places] if len(wanted) != len(texts) else found

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[Wording | None]]:
        """Return the vectors of :meth:`encode`, and what the wording of each text showed (:mod:`.wording`).

        Wording is read to a text's end, or to its 4,096th token, as a reader sees it (:func:`.texts.legible`); a vector
        is of the text as it stands. A text without a token shows nothing: None.
        """
        wanted, places = distinct(texts)
        found, shown = self._read(wanted)
        return found[places], [shown[place] for place in places]

    def states(self, texts: Sequence[str]) -> Iterator[tuple[int, Tensor, list[Unit]]]:
        """Yield each text's number, the states of its tokens behind layer 4, (T, 384), and its units' tokens.

        For training: each text is read as :meth:`read` does.
        """
        some = self._tokens([legible(text).text for text in texts])
        for number, states in self._forward([one.pieces for one in some], None, ()):
            yield number, states, some[number].units

    def _encodings(self, texts: Sequence[str]) -> list[Encoding]:
        some: list[Encoding] = self._tokenizer.encode_batch(encodable(list(texts)))
        return some

    def _beginnings(self, texts: list[str]) -> list[Encoding]:
        """Return the tokens of each text's vector, and perhaps more; of a long text its beginning is enough."""
        texts = encodable(texts)
        begun = [_beginning(text) for text in texts]
        found = self._encodings(begun)
        for at, encoding in enumerate(found):
            if len(encoding.ids) < VECTOR_TOKENS_MAX + 2 and len(begun[at]) < len(texts[at]):  # long words, or blanks
                found[at] = self._encodings([texts[at]])[0]
        return found

    def _tokens(self, texts: list[str]) -> list[Tokens]:
        found = list[Tokens]()
        for text, encoding in zip(texts, self._encodings(texts), strict=True):
            units = _units(text, encoding)
            read = encoding.offsets[-2][1] if len(encoding.ids) == TOKENS_MAX + 2 else len(text)
            found.append(Tokens(units, _pieces(encoding, begins_of(units)), read))
        return found

    def _embed(self, texts: list[str], found: NDArray[np.float32], rows: Sequence[int]) -> None:
        """Put the vectors of some texts into ``rows`` of ``found``."""
        ids = [encoding.ids for encoding in self._beginnings(texts)]
        ids = [[*one[: 1 + VECTOR_TOKENS_MAX], one[-1]] if len(one) > 2 + VECTOR_TOKENS_MAX else one for one in ids]
        for batch in batches([len(one) for one in ids], tokens_max=BATCH_TOKENS_MAX):
            vectors, _ = self._model.read([ids[number] for number in batch])
            for number, vector in zip(batch, vectors, strict=True):
                found[rows[number]] = vector.numpy()

    def _read(self, texts: list[str]) -> tuple[NDArray[np.float32], list[Wording | None]]:
        found = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        shown: list[Wording | None] = [None] * len(texts)
        seen = [legible(text) for text in texts]
        some = self._tokens([one.text for one in seen])
        # A short text's vector and wording come of one pass.
        apart = {n for n, one in enumerate(some) if len(one.pieces) > 1 or seen[n].text != texts[n]}
        self._embed([texts[number] for number in sorted(apart)], found, sorted(apart))
        ready, tokens = list[Read](), 0
        for number, states in self._forward([one.pieces for one in some], found, apart):
            ready.append(Read(number, states))
            tokens += len(states)
            if tokens >= BATCH_TOKENS_MAX:
                self._judge(ready, some, shown)
                ready, tokens = [], 0
        self._judge(ready, some, shown)
        return found, [one and _placed(one, read) for one, read in zip(shown, seen, strict=True)]

    def _judge(self, ready: list[Read], some: list[Tokens], shown: list[Wording | None]) -> None:
        """Put what the wording of some texts showed in its place: the head reads them at once."""
        ready = [one for one in ready if some[one.number].units]
        if not ready:
            return
        if self._head is None:
            self._head = shipped()
        rows = np.cumsum([0, *(len(one.states) for one in ready)])
        units = [(row, unit) for row, one in zip(rows.tolist(), ready, strict=False) for unit in some[one.number].units]
        tokens = torch.from_numpy(np.concatenate([np.asarray(unit.tokens) + row for row, unit in units]))
        ends = np.cumsum([len(unit.tokens) for _, unit in units]).tolist()
        logits = self._head.logits(torch.cat([one.states for one in ready]), tokens, ends).numpy()
        first = 0
        for one in ready:
            of = some[one.number]
            own = logits[first : first + len(of.units)]
            first, worst = first + len(of.units), int(own.argmax())
            unit = of.units[worst]
            shown[one.number] = Wording(round(float(own[worst]), LOGIT_DIGITS), unit.first, unit.end, of.read)

    def _forward(
        self, pieces: list[list[Piece]], found: NDArray[np.float32] | None, apart: Collection[int]
    ) -> Iterator[tuple[int, Tensor]]:
        """Yield each text's number and the states of its tokens, (T, 384).

        The vectors of those that are not ``apart``, of one window each, go into ``found``, if there is one.
        """
        waiting: dict[int, dict[int, Tensor]] = {}
        every = [(number, at) for number, of in enumerate(pieces) for at in range(len(of))]
        for pool in (True, False):  # without a vector the pass ends behind layer 4
            some = [one for one in every if (found is not None and one[0] not in apart) is pool]
            sizes = [len(pieces[number][at][1]) for number, at in some]
            for batch in batches(sizes, tokens_max=BATCH_TOKENS_MAX):
                chosen = [some[index] for index in batch]
                vectors, states = self._model.read([pieces[number][at][1] for number, at in chosen], pool=pool)
                row = 0
                for place, (number, at) in enumerate(chosen):
                    window, ids = pieces[number][at]
                    if pool and found is not None:
                        found[number] = vectors[place].numpy()
                    begin = row + 1 - window.first  # [CLS] comes first
                    of = waiting.setdefault(number, {})
                    of[at] = states[begin + window.own : begin + window.until]
                    row += len(ids)
                    if len(of) == len(pieces[number]):
                        yield number, torch.cat([of[index] for index in range(len(of))])
                        del waiting[number]


def _beginning(text: str) -> str:
    """Return a text to its first blank behind BEGINNING_CHARS characters: no word is cut there, nor any token."""
    end = text.find(" ", BEGINNING_CHARS)
    return text if end < 0 else text[:end]


def _pieces(encoding: Encoding, begins: Sequence[int]) -> list[Piece]:
    ids = encoding.ids
    some = windows(len(ids) - 2, begins)
    return [(window, [ids[0], *ids[1 + window.first : 1 + window.end], ids[-1]]) for window in some]


def _placed(shown: Wording, seen: Reading) -> Wording:
    """Return what a reading showed, with the places of the text that it is a reading of."""
    first, end = seen.place(shown.first, shown.end)
    return Wording(shown.logit, first, end, seen.place(0, shown.read)[1])


def _units(text: str, encoding: Encoding) -> list[Unit]:
    starts = [first for first, _ in encoding.offsets[1:-1]]
    return units_of(text, starts, whole=len(starts) <= WHOLE_TOKENS_MAX)


def _multiplies_bf16(cpuinfo: Path = _CPU_FLAGS) -> bool:
    """Say whether the CPU has a bfloat16 matrix or dot-product unit (AMX, AVX-512 BF16)."""
    try:
        flags = cpuinfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags
