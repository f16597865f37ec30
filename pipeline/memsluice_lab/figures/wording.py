"""What the wording signal costs beyond the encoder: its head in *seal*, its n-grams in *screen*, and its files."""

import time
from importlib import resources

import numpy as np

from memsluice.encoder import load_encoder
from memsluice.encoder import wording as heads
from memsluice.encoder.base import read
from memsluice.errors import StateError
from memsluice.gate.detectors.wording import shipped
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

TEXTS = 1_024
BATCH = 256
"""Texts at a time, as *seal* takes them."""
ROUNDS = 7
KIB_MAX = 100


def wording_us(setting: Setting) -> Measured:
    """CPU microseconds of a write, one thread: the median of reading over encoding, and of judging by the n-grams."""
    with streams(setting) as paths:
        texts = list(
            dict.fromkeys(line["text"] for path in paths for line in read_stream(path) if line["kind"] == "write")
        )
    chosen = texts[:: max(1, len(texts) // TEXTS)][:TEXTS]
    encoder, classifier = load_encoder(threads=1), shipped.shipped()
    batches = [chosen[at : at + BATCH] for at in range(0, len(chosen), BATCH)]
    wordings = [wording for batch in batches for wording in read(encoder, batch)[1]]
    if None in wordings:
        raise StateError("the encoder read no wording of some text")
    extra, encoding, judging = list[float](), list[float](), list[float]()
    for number in range(ROUNDS):
        for batch in batches:
            began = time.process_time_ns()
            encoder.encode(batch)
            between = time.process_time_ns()
            read(encoder, batch)
            ended = time.process_time_ns()
            encoding.append((between - began) / 1_000 / len(batch))
            extra.append((ended - between) / 1_000 / len(batch) - encoding[-1])
        for text, wording in zip(chosen, wordings, strict=True):
            began = time.process_time_ns()
            classifier.judge(text, wording)
            judging.append((time.process_time_ns() - began) / 1_000)
        setting.say(f"round {number + 1} of {ROUNDS}")
    of_head, of_grams = float(np.median(extra)), float(np.median(judging))
    rows = [
        ("texts", f"{len(chosen):,}, {BATCH} at a time, {ROUNDS} rounds"),
        ("encoding alone", f"{np.median(encoding):.0f} µs a text"),
        ("the head: reading over encoding", f"{of_head:.0f} µs a text; batches {min(extra):.0f} to {max(extra):.0f}"),
        ("the n-grams and the mix", f"{of_grams:.0f} µs median, {np.quantile(judging, 0.99):.0f} p99"),
    ]
    return Measured(of_head + of_grams, (*rows, *_sizes()))


def _sizes() -> list[tuple[str, str]]:
    files = (
        resources.files("memsluice.encoder") / "model" / heads.FILE,
        resources.files("memsluice.gate.detectors.wording") / "model" / shipped.FILE,
    )
    kib = [len(file.read_bytes()) / 1024 for file in files]
    told = " + ".join(f"{size:.1f}" for size in kib)
    met = "met" if sum(kib) <= KIB_MAX else "missed"
    return [("both files", f"{told} = {sum(kib):.1f} KiB; the goal, {KIB_MAX} KiB, is {met}")]
