"""What the wording signal costs beyond the encoder: its head in *seal*, its n-grams in *screen*, and its files."""

import time
from importlib import resources
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import load_encoder, loop
from memsluice.encoder import wording as heads
from memsluice.encoder.base import read
from memsluice.errors import StateError
from memsluice.gate.detectors.wording import shipped
from memsluice.runtimes.assembly import SEAL_BATCH
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

TEXTS = 1_024
ROUNDS = 7
KIB_MAX = 100


def wording_us(setting: Setting) -> Measured:
    """CPU microseconds of a write, one thread, the median pass: reading over encoding, and judging by the n-grams."""
    with streams(setting) as paths:
        texts = list(
            dict.fromkeys(line["text"] for path in paths for line in read_stream(path) if line["kind"] == "write")
        )
    chosen = texts[:: max(1, len(texts) // TEXTS)][:TEXTS]
    encoder, classifier = load_encoder(threads=1), shipped.shipped()
    batches = [chosen[at : at + SEAL_BATCH] for at in range(0, len(chosen), SEAL_BATCH)]
    wordings = [wording for batch in batches for wording in read(encoder, batch)[1]]
    if None in wordings:
        raise StateError("the encoder read no wording of some text")
    encoding, once, reading = (np.empty((ROUNDS, len(batches))) for _ in range(3))
    judging = np.empty((ROUNDS, len(chosen)))
    for number in range(ROUNDS):
        for at, batch in enumerate(batches):
            began = time.process_time_ns()
            encoder.encode(batch)
            encoding[number, at] = time.process_time_ns() - began
            with patch.object(loop, "DOUBT", np.inf):  # what the head takes where no text is read a second time
                began = time.process_time_ns()
                read(encoder, batch)
                once[number, at] = time.process_time_ns() - began
            began = time.process_time_ns()
            read(encoder, batch)
            reading[number, at] = time.process_time_ns() - began
        for at, (text, wording) in enumerate(zip(chosen, wordings, strict=True)):
            began = time.process_time_ns()
            classifier.judge(text, wording)
            judging[number, at] = time.process_time_ns() - began
        setting.say(f"round {number + 1} of {ROUNDS}")
    of_head = _usual((reading - encoding).sum(axis=1) / len(chosen))
    of_grams = _usual(judging.mean(axis=1))
    rows = [
        ("texts", f"{len(chosen):,}, {SEAL_BATCH} at a time, {ROUNDS} rounds"),
        ("encoding alone", f"{_usual(encoding.sum(axis=1) / len(chosen)):.0f} µs a text"),
        ("the head: reading over encoding", f"{of_head:.0f} µs a text"),
        (
            "… of it the first reading of all texts",
            f"{_usual((once - encoding).sum(axis=1) / len(chosen)):.0f} µs a text",
        ),
        ("… reading again", f"{_usual((reading - once).sum(axis=1) / len(chosen)):.0f} µs a text"),
        *(_batch(at, batch, encoding[:, at], reading[:, at]) for at, batch in enumerate(batches)),
        ("the n-grams and the mix", f"{of_grams:.0f} µs, median {np.median(judging) / 1_000:.0f}"),
    ]
    return Measured(of_head + of_grams, (*rows, *_sizes()))


def _usual(passes: NDArray[np.float64]) -> float:
    """Return the microseconds of the median of some passes, which are in nanoseconds."""
    return float(np.median(passes)) / 1_000


def _batch(at: int, batch: list[str], encoding: NDArray[np.float64], reading: NDArray[np.float64]) -> tuple[str, str]:
    """Return a row of one batch: where its texts are short, show nothing or are sure, none is read again."""
    chars = sum(map(len, batch)) / len(batch)
    over = _usual((reading - encoding) / len(batch))
    of = _usual(encoding / len(batch))
    return f"… batch {at + 1}, {chars:.0f} characters a text", f"{over:.0f} µs over {of:.0f}, {100 * over / of:.1f} %"


def _sizes() -> list[tuple[str, str]]:
    files = (
        resources.files("memsluice.encoder") / "model" / heads.FILE,
        resources.files("memsluice.gate.detectors.wording") / "model" / shipped.FILE,
    )
    kib = [len(file.read_bytes()) / 1024 for file in files]
    told = " + ".join(f"{size:.1f}" for size in kib)
    met = "met" if sum(kib) <= KIB_MAX else "missed"
    return [("both files", f"{told} = {sum(kib):.1f} KiB; the goal, {KIB_MAX} KiB, is {met}")]
