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
from memsluice.encoder.reading import TOKENS_MAX, WINDOW, Unit, Window, units_of, windows
from memsluice.encoder.texts import encodable
from memsluice.encoder.weights import DIMENSIONS, MODEL_ID, REVISION, TOKENIZER_FILE, WEIGHTS_FILE
from memsluice.encoder.wording import WHOLE_TOKENS_MAX, Head, shipped
from memsluice.envelope.seals import Wording
from memsluice.errors import ConfigError

BATCH_TOKENS_MAX = 1024  # larger batches leave the caches: measured slower, and they bound memory at about 20 MiB
BEGINNING_CHARS = 2_048
"""Characters that nearly always hold a window's tokens; where they do not, the whole text is read."""
LOGIT_DIGITS = 3

_CPU_FLAGS = Path("/proc/cpuinfo")


class Read(NamedTuple):
    """A text whose tokens were read: its number, their states, (T, 384), and its units."""

    number: int
    states: Tensor
    units: list[Unit]


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
        pieces = [self._pieces(encoding, WINDOW) for encoding in self._beginnings(wanted)]
        for _ in self._forward(pieces, found, judged=False):
            pass
        return found[places] if len(wanted) != len(texts) else found

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[Wording | None]]:
        """Return the vectors of :meth:`encode`, and what the wording of each text showed (:mod:`.wording`).

        A text is read to its end, or to its 4,096th token. One without a token shows nothing: None.
        """
        wanted, places = distinct(texts)
        found, shown = self._read(wanted)
        return found[places], [shown[place] for place in places]

    def states(self, texts: Sequence[str]) -> Iterator[tuple[int, Tensor, list[Unit]]]:
        """Yield each text's number, the states of its tokens behind layer 4, (T, 384), and its units' tokens.

        For training: each text is read as :meth:`read` does.
        """
        encodings = self._encodings(texts)
        pieces = [self._pieces(encoding) for encoding in encodings]
        for number, states in self._forward(pieces, None, judged=True):
            yield number, states, _units(texts[number], encodings[number])

    def _encodings(self, texts: Sequence[str]) -> list[Encoding]:
        some: list[Encoding] = self._tokenizer.encode_batch(encodable(list(texts)))
        return some

    def _beginnings(self, texts: list[str]) -> list[Encoding]:
        """Return the tokens of each text's first window, and perhaps more; of a long text its beginning is enough."""
        texts = encodable(texts)
        begun = [_beginning(text) for text in texts]
        found = self._encodings(begun)
        for at, encoding in enumerate(found):
            if len(encoding.ids) < WINDOW + 2 and len(begun[at]) < len(texts[at]):  # long words, or blanks
                found[at] = self._encodings([texts[at]])[0]
        return found

    def _pieces(self, encoding: Encoding, tokens_max: int = TOKENS_MAX) -> list[tuple[Window, list[int]]]:
        ids = encoding.ids
        some = windows(min(len(ids) - 2, tokens_max))
        return [(window, [ids[0], *ids[1 + window.first : 1 + window.end], ids[-1]]) for window in some]

    def _read(self, texts: list[str]) -> tuple[NDArray[np.float32], list[Wording | None]]:
        found = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        shown: list[Wording | None] = [None] * len(texts)
        encodings = self._encodings(texts)
        pieces = [self._pieces(encoding) for encoding in encodings]
        ready, tokens = list[Read](), 0
        for number, states in self._forward(pieces, found, judged=True):
            ready.append(Read(number, states, _units(texts[number], encodings[number])))
            tokens += len(states)
            if tokens >= BATCH_TOKENS_MAX:
                self._judge(ready, texts, encodings, shown)
                ready, tokens = [], 0
        self._judge(ready, texts, encodings, shown)
        return found, shown

    def _judge(
        self, ready: list[Read], texts: list[str], encodings: list[Encoding], shown: list[Wording | None]
    ) -> None:
        """Put what the wording of some texts showed in its place: the head reads them at once."""
        ready = [one for one in ready if one.units]
        if not ready:
            return
        if self._head is None:
            self._head = shipped()
        rows = np.cumsum([0, *(len(one.states) for one in ready)])
        units = [(row, unit) for row, one in zip(rows.tolist(), ready, strict=False) for unit in one.units]
        tokens = torch.from_numpy(np.concatenate([np.asarray(unit.tokens) + row for row, unit in units]))
        ends = np.cumsum([len(unit.tokens) for _, unit in units]).tolist()
        logits = self._head.logits(torch.cat([one.states for one in ready]), tokens, ends).numpy()
        first = 0
        for one in ready:
            own = logits[first : first + len(one.units)]
            first, worst = first + len(one.units), int(own.argmax())
            encoding, text = encodings[one.number], texts[one.number]
            end = encoding.offsets[-2][1] if len(encoding.ids) == TOKENS_MAX + 2 else len(text)
            unit = one.units[worst]
            shown[one.number] = Wording(round(float(own[worst]), LOGIT_DIGITS), unit.first, unit.end, end)

    def _forward(
        self, pieces: list[list[tuple[Window, list[int]]]], found: NDArray[np.float32] | None, *, judged: bool
    ) -> Iterator[tuple[int, Tensor]]:
        """Put every text's vector into ``found``; yield, if they are to be judged, the states of each text's tokens."""
        waiting: dict[int, dict[int, Tensor]] = {}
        for first in (True, False):  # the first windows make vectors, the others end behind layer 4
            some = [
                (number, at) for number, of in enumerate(pieces) for at in (range(1) if first else range(1, len(of)))
            ]
            sizes = [len(pieces[number][at][1]) for number, at in some]
            for batch in batches(sizes, tokens_max=BATCH_TOKENS_MAX):
                chosen = [some[index] for index in batch]
                pool = first and found is not None
                vectors, states = self._model.read([pieces[number][at][1] for number, at in chosen], pool=pool)
                row = 0
                for place, (number, at) in enumerate(chosen):
                    window, ids = pieces[number][at]
                    if first and found is not None:
                        found[number] = vectors[place].numpy()
                    own = states[row + 1 + window.own - window.first : row + len(ids) - 1]
                    row += len(ids)
                    if judged:
                        of = waiting.setdefault(number, {})
                        of[at] = own
                        if len(of) == len(pieces[number]):
                            yield number, torch.cat([of[index] for index in range(len(of))])
                            del waiting[number]


def _beginning(text: str) -> str:
    """Return a text to its first blank behind BEGINNING_CHARS characters: no word is cut there, nor any token."""
    end = text.find(" ", BEGINNING_CHARS)
    return text if end < 0 else text[:end]


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
