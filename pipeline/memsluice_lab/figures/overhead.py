"""What a verified recall costs beside a plain search of the same partition, the same index and the same questions."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median, quantiles
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memsluice.clock import wall_ms
from memsluice.encoder import Encoder, load_encoder
from memsluice.envelope.codec import DIMENSIONS, Vector, vector_from_bytes, vector_to_bytes
from memsluice.envelope.registry import Role
from memsluice.errors import StateError
from memsluice.events.models import Recall, Zone
from memsluice.keystore.store import issue_credential
from memsluice.readers.apart import ApartTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Recaller
from memsluice.stores.opening import open_store
from memsluice.stores.weaviate.admin import client
from memsluice.stores.weaviate.store import address_of
from memsluice.stores.weaviate.wire import COLLECTIONS, PROPERTIES
from memsluice.topics import names
from memsluice_lab.figures.bed import Bed, bed
from memsluice_lab.figures.landing import land
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream
from memsluice_lab.tampering.entries import Gate, Landing

TENANT, K = "overhead", 5
ENTRIES, TEXTS, QUESTIONS, WARM = 100_000, 4_000, 400, 20
SPREAD = 0.25
"""Length of what is added to a text's unit vector, so that many entries lie around one text and no two are alike."""
ADMISSION_BYTES = 900
"""What one signs, about."""
Ask = Callable[[str, Vector], int]


class Known:
    """An encoder that has encoded all questions already: both sides are given their vectors."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions
        self.vectors: dict[str, Vector] = {}

    def encode(self, texts: Sequence[str]) -> Any:
        """Return float32 of shape (n, d); each text is encoded once."""
        for text in texts:
            if text not in self.vectors:
                self.vectors[text] = self.encoder.encode([text])[0]
        return np.stack([self.vectors[text] for text in texts])


def recall_overhead(setting: Setting) -> Measured:
    """Median time of a verified recall over that of a plain near_vector of the same k, in turn, at 100,000 entries."""
    with streams(setting) as paths, bed(setting) as running:
        lines = [line for path in paths for line in read_stream(path)]
        texts = _some([str(line["text"]) for line in lines if line["kind"] == "write"], TEXTS)
        asked = _some([str(line["text"]) for line in lines if line["kind"] == "query"], WARM + QUESTIONS)
        encoder = Known(load_encoder())
        encoder.encode(asked)
        land(running, _admitted(running, texts, encoder))
        with _sides(running, encoder) as sides:
            times = _timed(sides, [(text, encoder.vectors[text]) for text in asked], setting)
    plain = median(times[PLAIN])
    rows = [("entries; questions, each asked of every side in turn", f"{ENTRIES:,}; {QUESTIONS}")]
    rows += [(name, f"{_spread(some)}; {median(some) / plain:.2f} × plain") for name, some in times.items()]
    rows.append((f"of it {K} Ed25519 signatures", _spread([_signatures() for _ in range(QUESTIONS)])))
    encoding = [_took(partial(encoder.encoder.encode, [text])) for text in asked]
    with_both = (median(times[VERIFIED]) + median(encoding)) / (plain + median(encoding))
    rows.append(
        ("encoding a question, which both sides were spared", f"{_spread(encoding)}; with it {with_both:.2f} ×")
    )
    return Measured(median(times[VERIFIED]) / plain, tuple(rows), (_NOTE,))


PLAIN, FETCHED, VERIFIED, EVENT = (
    "plain near_vector",
    "plain near_vector that fetches all that a reader has to verify",
    "verified recall, without its event",
    "verified recall, event acknowledged",
)


def _some(texts: Sequence[str], count: int) -> list[str]:
    found = list(dict.fromkeys(text for text in texts if text.strip()))
    if len(found) < count // 2:
        raise StateError(f"the streams have {len(found)} texts of {count} that are needed")
    return found[:: max(1, len(found) // count)][:count]


def _admitted(running: Bed, texts: Sequence[str], encoder: Known) -> Iterator[Landing]:
    """Yield entries around the vectors of real texts."""
    gate, chance = Gate(running.store.keyring(), wall_ms(), 1), np.random.default_rng(1)
    around = encoder.encoder.encode(list(texts))
    for number in range(ENTRIES):
        added = chance.standard_normal(DIMENSIONS).astype(np.float32)
        vector = around[number % len(texts)] + SPREAD * added / np.linalg.norm(added)
        vector = vector_from_bytes(vector_to_bytes((vector / np.linalg.norm(vector)).astype(np.float32)))
        yield gate.admit(TENANT, texts[number % len(texts)], vector, event_id=f"e{number}")


@contextmanager
def _sides(running: Bed, encoder: Known) -> Iterator[dict[str, Ask]]:
    issue_credential(running.store, Role.READER, "agent", [TENANT])
    with ExitStack() as opened:
        store = opened.enter_context(client(address_of(running.connection, names.WEAVIATE_RECALL)))
        partition = store.collections.use(COLLECTIONS[Zone.GUIDANCE]).with_tenant(TENANT)
        whole = opened.enter_context(Recaller.open_local(tenant=TENANT, home=running.home))
        alone = open_store(running.connection, names.WEAVIATE_RECALL)
        opened.callback(alone.close)
        log = ApartTopic(running.connection, names.USER_READER, names.STORE)
        opened.callback(log.close)
        silent = Recaller(
            store=alone, encoder=encoder, keys=running.store.keyring, permits=_nothing, publish=_nothing,
            now_ms=wall_ms, new_id=lambda: "unpublished",
            freshness=FreshnessIndex(log, running.store.keyring, names.PARTITIONS),
        )  # fmt: skip
        opened.callback(silent.close)
        whole._encoder = encoder

        def plain(_text: str, vector: Vector) -> int:
            found = partition.query.near_vector(vector.tolist(), limit=K, return_properties=["content"])
            return len(found.objects)

        def fetched(_text: str, vector: Vector) -> int:
            wanted = list(PROPERTIES)
            found = partition.query.near_vector(vector.tolist(), limit=K, return_properties=wanted, include_vector=True)
            return len(found.objects)

        yield {PLAIN: plain, FETCHED: fetched, VERIFIED: _asking(silent), EVENT: _asking(whole)}


def _asking(recaller: Recaller) -> Ask:
    def ask(text: str, _vector: Vector) -> int:
        return len(recaller.recall(TENANT, text, agent="agent", principal="ana", session="overhead", k=K).entries)

    return ask


def _nothing(_event: Recall) -> None:
    """Publish nothing, and forbid nothing."""


def _timed(sides: dict[str, Ask], asked: Sequence[tuple[str, Vector]], setting: Setting) -> dict[str, list[float]]:
    """Ask every side each question, another side first each time; return the seconds, without the first WARM.

    Raises StateError where a side does not return k entries.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for number, (text, vector) in enumerate(asked):
        for name in order[number % len(order) :] + order[: number % len(order)]:
            began = time.perf_counter()
            found = sides[name](text, vector)
            spent = time.perf_counter() - began
            if found != K:
                raise StateError(f"{name} returned {found} entries of {K}")
            if number >= WARM:
                times[name].append(spent)
        if number == WARM:
            setting.say("all sides are warm")
    return times


def _signatures() -> float:
    """Return how long the signatures alone of one answer take, by the library that verifies them."""
    key, said = Ed25519PrivateKey.generate(), bytes(ADMISSION_BYTES)
    signed, public = key.sign(said), key.public_key()
    return sum(_took(partial(public.verify, signed, said)) for _ in range(K))


def _took(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1e3:.2f} ms median, {quantiles(seconds, n=100)[94] * 1e3:.2f} p95"


_NOTE = (
    "Real: broker, store, a land worker. Every entry was landed; those around one text share its words. Plain: "
    "weaviate-client's near_vector on the same partition, unfiltered, its content alone returned. The recall verifies "
    "each entry that it returns and reads the log to its end meanwhile. All of the partition lies in its scope, so its "
    "first search needs no filter (in a scope that is a smaller part of a zone, the store filters), and what should "
    "lie there is counted beside the answers, once a minute. Agents' own processes check for patterns, as here; the "
    "recall service's wording detector reads each entry once, the first time that it is shown."
)
