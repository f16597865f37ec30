"""The encoder beside the plain call, on real texts of mixed length."""

from memsluice.encoder import load_encoder
from memsluice.errors import StateError
from memsluice_lab import baselines
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

TEXTS = 1_024
COSINE_MIN = 0.9999


def encoder_ratio(setting: Setting) -> Measured:
    """Texts a second, ours (256 at a time, as *seal* takes them) over the plain call; cosines at least 0.9999."""
    with streams(setting) as paths:
        texts = [str(line["text"]) for path in paths for line in read_stream(path) if line["kind"] == "write"]
    chosen = texts[:: max(1, len(texts) // TEXTS)][:TEXTS]
    result = baselines.encoder_ratio(chosen, load_encoder())
    if result.cosine_min < COSINE_MIN:
        raise StateError(f"least cosine to the plain vectors is {result.cosine_min:.6f}, below {COSINE_MIN}")
    size = max(result.ratio)
    rows = [("texts", f"{result.texts:,}, every {max(1, len(texts) // TEXTS)}th write of all streams")]
    rows += [("SentenceTransformer.encode(batch_size=64)", f"{result.plain_per_s:.0f} texts/s")]
    rows += [
        (f"ours, {n} at a time", f"{result.own_per_s[n]:.0f} texts/s, {result.ratio[n]:.2f} ×") for n in result.ratio
    ]
    rows += [("least cosine between both", f"{result.cosine_min:.6f}"), ("rounds, taking turns", str(result.rounds))]
    return Measured(result.ratio[size], tuple(rows))
