"""The encoder the product runs: tokenise, sort, pack, encode, put back in order."""

from collections.abc import Iterator, Sequence
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
from memsluice.encoder.reading import TOKENS_MAX, Unit, Window, begins_of, units_of, whole, windows
from memsluice.encoder.texts import encodable, legible
from memsluice.encoder.weights import DIMENSIONS, MODEL_ID, REVISION, TOKENIZER_FILE, WEIGHTS_FILE
from memsluice.encoder.wording import DOUBT, WHOLE_TOKENS_MAX, Head, shipped
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


class Tokens(NamedTuple):
    """A text as it is read for its wording: its tokens, its units, and how many of its characters are read."""

    ids: list[int]
    units: list[Unit]
    read: int

    def pieces(self) -> list[Piece]:
        """Return the short windows that it is read in."""
        some = windows(len(self.ids) - 2, begins_of(self.units))
        return [(one, [self.ids[0], *self.ids[1 + one.first : 1 + one.end], self.ids[-1]]) for one in some]

    def at_once(self) -> list[Piece]:
        """Return the one window of a text that is read as its vector is."""
        return [(whole(len(self.ids) - 2), self.ids)]


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
        is of the text as it stands. What the vector is made from is judged first; a text that shows more than DOUBT
        there, or is not read whole by it, is read in short windows. A text without a token shows nothing: None.
        """
        wanted, places = distinct(texts)
        found, shown = self._read(wanted)
        return found[places], [shown[place] for place in places]

    def states(self, texts: Sequence[str]) -> Iterator[tuple[int, Tensor, list[Unit]]]:
        """Yield each text's number, the states of its tokens behind layer 4, (T, 384), and its units' tokens.

        For training: each text is read as :meth:`read` does.
        """
        some = self._tokens([_plain(text, legible(text)) for text in texts])
        for number, states in self._forward({number: one.pieces() for number, one in enumerate(some)}, None):
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
            ids, offsets = encoding.ids, encoding.offsets
            read = offsets[-2][1] if len(ids) == TOKENS_MAX + 2 else len(text)
            found.append(Tokens(ids, _units(text, offsets), read))
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
        some = self._tokens([_plain(text, read) for text, read in zip(texts, seen, strict=True)])
        # Such a text's vector and what its wording shows come of one pass.
        joint = [n for n, one in enumerate(some) if seen[n] is None and len(one.ids) <= VECTOR_TOKENS_MAX + 2]
        apart = sorted({*range(len(texts))} - {*joint})
        self._embed([texts[number] for number in apart], found, apart)
        self._judge(self._forward({number: some[number].at_once() for number in joint}, found), some, shown)
        # What short windows show counts, be it less: the models are fitted on these, and two tries would hold more.
        doubtful = ((number, some[number].pieces()) for number in joint if _doubtful(shown[number]))
        again = {number: of for number, of in doubtful if len(of) > 1}
        self._judge(self._forward({number: some[number].pieces() for number in apart} | again, None), some, shown)
        return found, [one and _placed(one, read) for one, read in zip(shown, seen, strict=True)]

    def _judge(self, states: Iterator[tuple[int, Tensor]], some: list[Tokens], shown: list[Wording | None]) -> None:
        """Put what the wording of each text showed in its place: the head reads those of a batch's size at once."""
        ready, tokens = list[tuple[int, Tensor]](), 0
        for number, of in states:
            if not some[number].units:
                continue
            ready.append((number, of))
            tokens += len(of)
            if tokens >= BATCH_TOKENS_MAX:
                self._show(ready, some, shown)
                ready, tokens = [], 0
        if ready:
            self._show(ready, some, shown)

    def _show(self, ready: list[tuple[int, Tensor]], some: list[Tokens], shown: list[Wording | None]) -> None:
        if self._head is None:
            self._head = shipped()
        rows = np.cumsum([0, *(len(states) for _, states in ready)]).tolist()
        units = [(row, unit) for row, (number, _) in zip(rows, ready, strict=False) for unit in some[number].units]
        tokens = torch.from_numpy(np.concatenate([np.asarray(unit.tokens) + row for row, unit in units]))
        ends = np.cumsum([len(unit.tokens) for _, unit in units]).tolist()
        logits = self._head.logits(torch.cat([states for _, states in ready]), tokens, ends).numpy()
        first = 0
        for number, _ in ready:
            of = some[number]
            own = logits[first : first + len(of.units)]
            first, worst = first + len(of.units), int(own.argmax())
            unit = of.units[worst]
            shown[number] = Wording(round(float(own[worst]), LOGIT_DIGITS), unit.first, unit.end, of.read)

    def _forward(
        self, pieces: dict[int, list[Piece]], found: NDArray[np.float32] | None
    ) -> Iterator[tuple[int, Tensor]]:
        """Yield each text's number and the states of its tokens, (T, 384).

        With ``found`` the vectors of the texts, of one window each, go there; without, the pass ends behind layer 4.
        """
        waiting: dict[int, dict[int, Tensor]] = {}
        every = [(number, at) for number, of in pieces.items() for at in range(len(of))]
        for batch in batches([len(pieces[number][at][1]) for number, at in every], tokens_max=BATCH_TOKENS_MAX):
            chosen = [every[index] for index in batch]
            vectors, states = self._model.read([pieces[number][at][1] for number, at in chosen], pool=found is not None)
            row = 0
            for place, (number, at) in enumerate(chosen):
                window, ids = pieces[number][at]
                if found is not None:
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


def _doubtful(shown: Wording | None) -> bool:
    return shown is not None and shown.logit > DOUBT


def _plain(text: str, read: Reading | None) -> str:
    return text if read is None else read.text


def _placed(shown: Wording, seen: Reading | None) -> Wording:
    """Return what a reading showed, with the places of the text that it is a reading of."""
    if seen is None:
        return shown
    first, end = seen.place(shown.first, shown.end)
    return Wording(shown.logit, first, end, seen.place(0, shown.read)[1])


def _units(text: str, offsets: Sequence[tuple[int, int]]) -> list[Unit]:
    starts = [first for first, _ in offsets[1:-1]]
    return units_of(text, starts, whole=len(starts) <= WHOLE_TOKENS_MAX)


def _multiplies_bf16(cpuinfo: Path = _CPU_FLAGS) -> bool:
    """Say whether the CPU has a bfloat16 matrix or dot-product unit (AMX, AVX-512 BF16)."""
    try:
        flags = cpuinfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags
