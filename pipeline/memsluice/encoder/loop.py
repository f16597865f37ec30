"""The encoder the product runs: tokenise, sort, pack, encode, put back in order."""

from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from memsluice.encoder.base import Precision
from memsluice.encoder.batching import batches, distinct
from memsluice.encoder.kernels import Products, fastest_kernel
from memsluice.encoder.minilm import MiniLM
from memsluice.encoder.reading import TOKENS_MAX, WINDOW, Unit, Window, begins_of, units_of, windows
from memsluice.encoder.texts import encodable, legible
from memsluice.encoder.weights import DIMENSIONS, MODEL_ID, REVISION, TOKENIZER_FILE, WEIGHTS_FILE
from memsluice.encoder.wording import DOUBT, SURE, WHOLE_TOKENS_MAX, Head, shipped
from memsluice.envelope.seals import Wording
from memsluice.errors import ConfigError
from memsluice.events.codes import Reading

BATCH_TOKENS_MAX = 1024  # larger batches leave the caches: measured slower, and a pass takes some 20 MiB
BEGINNING_CHARS = 2_048
"""Characters that nearly always hold a vector's tokens; where they do not, the whole text is read."""
VECTOR_TOKENS_MAX = 254
"""Tokens that a vector is made from, without [CLS] and [SEP] (sentence_bert_config.json: 256 with them)."""
LOGIT_DIGITS = 3
Piece = tuple[Window, list[int]]
"""A window, and the ids that the model is given for it."""
Logits = NDArray[np.float32]
"""The log-odds of a text's units, (units,)."""


class Tokens(NamedTuple):
    """A text as it is read for its wording: its tokens, its units, and how many of its characters are read."""

    ids: list[int]
    units: list[Unit]
    read: int

    def pieces(self, size: int = WINDOW) -> list[Piece]:
        """Return the windows of ``size`` tokens that it is read in."""
        some = windows(len(self.ids) - 2, begins_of(self.units), size)
        return [(one, [self.ids[0], *self.ids[1 + one.first : 1 + one.end], self.ids[-1]]) for one in some]

    def doubted(self, logits: Logits) -> "Doubted | None":
        """Return what is read again: the units that showed more than DOUBT, unless one showed SURE or more.

        None where nothing is, or where a short window shows no other.
        """
        if len(self.ids) - 2 <= WINDOW or not DOUBT < logits.max() < SURE:
            return None
        unsure = np.flatnonzero(logits > DOUBT).tolist()
        units = [self.units[at] for at in unsure]
        spans = [(unit.tokens[0], unit.tokens[-1]) for unit in units]
        pieces = [one for one in self.pieces() if any(one[0].own <= z and a < one[0].until for a, z in spans)]
        rows = np.concatenate([np.arange(window.own, window.until) for window, _ in pieces])
        units = [unit._replace(tokens=np.searchsorted(rows, unit.tokens).tolist()) for unit in units]
        return Doubted(unsure, pieces, units)


class Doubted(NamedTuple):
    """What is read again of a text: which units, the short windows that have their tokens, and the units by the rows
    of these windows' own tokens."""

    unsure: list[int]
    pieces: list[Piece]
    units: list[Unit]


class MiniLMEncoder:
    """all-MiniLM-L6-v2 on the CPU; see :class:`memsluice.encoder.base.Encoder`.

    A text's vector does not depend on what is encoded beside it, nor on its place (to the last bit or to rounding:
    :mod:`memsluice.encoder.minilm`); ``kernel`` says by what, and in which numbers, the products were computed.
    """

    model_id = MODEL_ID
    revision = REVISION
    dimensions = DIMENSIONS

    def __init__(
        self,
        weights: Path,
        *,
        threads: int | None = None,
        precision: Precision = "auto",
        kernel: Products | None = None,
    ) -> None:
        """``kernel`` None is the fastest one of this machine."""
        if threads is not None:
            if threads < 1:
                raise ConfigError(f"encoder threads must be at least 1, not {threads}")
            torch.set_num_threads(threads)
        self.kernel: Products = kernel or fastest_kernel(precision)
        self._model = MiniLM(weights / WEIGHTS_FILE, self.kernel)
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
        is of the text as it stands. A text is read in windows as long as a vector's first; units that show more than
        DOUBT there are read again in short ones, and count as these show them, unless a unit of the text shows SURE or
        more. Without a token a text shows None.
        """
        wanted, places = distinct(texts)
        found, shown = self._read(wanted)
        return found[places], [shown[place] for place in places]

    def states(self, texts: Sequence[str]) -> Iterator[tuple[int, Tensor, list[Unit]]]:
        """Yield each text's number, the states of its tokens behind layer 4, (T, 384), and its units' tokens.

        For training: each text is read in short windows, as :meth:`read` reads units that showed more than DOUBT.
        """
        some = self._tokens([_plain(text, legible(text)) for text in texts])
        for number, states in self._forward({number: one.pieces() for number, one in enumerate(some)}):
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
        # Where no code is opened a text's first window is what its vector is made from, and both come of one pass.
        joint = {number for number, read in enumerate(seen) if read is None}
        apart = [number for number in range(len(texts)) if number not in joint]
        self._embed([texts[number] for number in apart], found, apart)
        first = {number: one.pieces(VECTOR_TOKENS_MAX) for number, one in enumerate(some)}
        logits = self._judge(self._forward(first, found, joint), {n: one.units for n, one in enumerate(some)})
        again = {number: doubted for number, of in logits.items() if (doubted := some[number].doubted(of))}
        states = self._forward({number: doubted.pieces for number, doubted in again.items()})
        # What short windows show of a unit counts, be it less: the models are fitted on these, and the higher of two
        # tries would hold more. Where all that were read again show less, the worst of the others speaks, below DOUBT.
        for number, of in self._judge(states, {number: doubted.units for number, doubted in again.items()}).items():
            logits[number][again[number].unsure] = of
        for number, of in logits.items():
            shown[number] = _placed(_worst(some[number], of), seen[number])
        return found, shown

    def _judge(self, states: Iterator[tuple[int, Tensor]], units: dict[int, list[Unit]]) -> dict[int, Logits]:
        """Return the log-odds of each text's units, if it has any: the head reads those of a batch's size at once."""
        found, ready, tokens = dict[int, Logits](), list[tuple[int, Tensor]](), 0
        for number, of in states:
            if not units[number]:
                continue
            ready.append((number, of))
            tokens += len(of)
            if tokens >= BATCH_TOKENS_MAX:
                found |= self._logits(ready, units)
                ready, tokens = [], 0
        return found | self._logits(ready, units) if ready else found

    def _logits(self, ready: list[tuple[int, Tensor]], units: dict[int, list[Unit]]) -> dict[int, Logits]:
        if self._head is None:
            self._head = shipped()
        rows = np.cumsum([0, *(len(states) for _, states in ready)]).tolist()
        every = [(row, unit) for row, (number, _) in zip(rows, ready, strict=False) for unit in units[number]]
        tokens = torch.from_numpy(np.concatenate([np.asarray(unit.tokens) + row for row, unit in every]))
        ends = np.cumsum([len(unit.tokens) for _, unit in every]).tolist()
        logits = self._head.logits(torch.cat([states for _, states in ready]), tokens, ends).numpy()
        until = np.cumsum([len(units[number]) for number, _ in ready])[:-1]
        return {number: of for (number, _), of in zip(ready, np.split(logits, until), strict=True)}

    def _forward(
        self, pieces: dict[int, list[Piece]], found: NDArray[np.float32] | None = None, joint: Set[int] = frozenset()
    ) -> Iterator[tuple[int, Tensor]]:
        """Yield each text's number and the states of its pieces' own tokens, (T, 384).

        The first piece of a text of ``joint`` gives its vector, too, which goes into ``found``; the pass of every other
        piece ends behind layer 4.
        """
        waiting: dict[int, dict[int, Tensor]] = {}
        every = [(number, at) for number, of in pieces.items() for at in range(len(of))]
        for pool in (True, False):
            some = [(number, at) for number, at in every if (at == 0 and number in joint) is pool]
            for batch in batches([len(pieces[number][at][1]) for number, at in some], tokens_max=BATCH_TOKENS_MAX):
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


def _plain(text: str, read: Reading | None) -> str:
    return text if read is None else read.text


def _worst(one: Tokens, logits: Logits) -> Wording:
    at = int(logits.argmax())
    return Wording(round(float(logits[at]), LOGIT_DIGITS), one.units[at].first, one.units[at].end, one.read)


def _placed(shown: Wording, seen: Reading | None) -> Wording:
    """Return what a reading showed, with the places of the text that it is a reading of."""
    if seen is None:
        return shown
    first, end = seen.place(shown.first, shown.end)
    return Wording(shown.logit, first, end, seen.place(0, shown.read)[1])


def _units(text: str, offsets: Sequence[tuple[int, int]]) -> list[Unit]:
    starts = [first for first, _ in offsets[1:-1]]
    return units_of(text, starts, whole=len(starts) <= WHOLE_TOKENS_MAX)
