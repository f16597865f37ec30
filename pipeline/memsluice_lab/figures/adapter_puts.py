"""What remembering and searching costs through each adapter, beside what frameworks do without a gate."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

from weaviate.classes.config import Configure, DataType, Property
from weaviate.classes.query import Filter

from memsluice.encoder import Encoder, load_encoder
from memsluice.errors import LandedElsewhere, NotRemembered, StateError, WriteHeld
from memsluice.stores.weaviate.admin import client
from memsluice.stores.weaviate.store import address_of
from memsluice.topics import names
from memsluice_lab.figures.accounted import unhurried
from memsluice_lab.figures.adapted import ADAPTERS, LISTED_MAX, Kept, LangGraph, Mem0, gate_on, own_mem0, text_of
from memsluice_lab.figures.bed import STAGES, Bed, bed
from memsluice_lab.figures.registry import Measured, Setting

PERSON, K = "ada", 5
WARM, ROUNDS = 20, 200
TIMED_SHARE = 0.8
BEGUN_S_MAX = 120.0
GATED = "{} through our adapter"
IN_MEMORY, WEAVIATE, MEM0 = (
    "LangGraph's InMemoryStore", "weaviate-client, one object a put", "mem0 with its default store (Qdrant on disk)"
)  # fmt: skip
PLAIN = (IN_MEMORY, WEAVIATE, MEM0)
WHOLE = (GATED.format("MCP"),)
"""Reads a person's whole graph at every call, as the tools that it offers do: its time is the graph's size. So each of
its rounds has a person, and a graph of one entity, of its own."""
HELD = (WriteHeld, LandedElsewhere, NotRemembered)
"""What a plain sentence raises where what an adapter writes around it was taken for an order; MCP's tools say no more
than that it was not remembered."""
Times = dict[str, list[float]]


def adapter_put_ms(setting: Setting) -> Measured:
    """Median milliseconds of LangGraph's ``put`` through our adapter, until what was put can be read."""
    with bed(setting, policy=unhurried()) as running, tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        running.start(*STAGES)
        sides = stack.enter_context(_sides(running, Path(place)))
        puts, searches = _timed(sides, setting)
    told = [_row(name, puts[name], searches[name]) for name in sides]
    ratios = [(f"{name}: put, and search, over", _over(puts, searches, name)) for name in sides if name not in PLAIN]
    held = ", ".join(f"{name} {ROUNDS - len(puts[name])}" for name in sides if len(puts[name]) < ROUNDS)
    rows = [("puts of each, taking turns; each read back", str(ROUNDS)), *told, *ratios]
    rows.append(("of them plain texts that were held, and are in no time", held or "none"))
    return Measured(median(puts[GATED.format("LangGraph")]) * 1e3, tuple(rows), (_NOTE,))


@contextmanager
def _sides(running: Bed, place: Path) -> Iterator[dict[str, Kept]]:
    """Give every adapter on one gate, and what frameworks do without one, all with one encoder."""
    from langgraph.store.memory import InMemoryStore

    encoder = load_encoder()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[float(part) for part in one] for one in encoder.encode(list(texts))]

    in_memory = InMemoryStore(index={"dims": encoder.dimensions, "embed": embed, "fields": ["text"]})
    qdrant = own_mem0(place, embed, dimensions=encoder.dimensions, provider="qdrant")
    with gate_on(running) as gate, client(address_of(running.connection, names.WEAVIATE_ADMIN)) as store:
        gated = {GATED.format(name): made(gate, place) for name, made in ADAPTERS.items()}
        _begun(gated)
        yield {
            **gated, IN_MEMORY: LangGraph(lambda _person: in_memory), WEAVIATE: PlainWeaviate(store, encoder),
            MEM0: Mem0(qdrant),
        }  # fmt: skip


class PlainWeaviate:
    """What a provider for Weaviate does: embed, insert, and search what is near."""

    def __init__(self, store: Any, encoder: Encoder) -> None:
        self._encoder = encoder
        text = [Property(name=name, data_type=DataType.TEXT) for name in ("person", "text")]
        vectors = Configure.Vectors.self_provided()
        self._collection = store.collections.create("PlainPuts", vector_config=vectors, properties=text)

    def put(self, person: str, key: str, text: str) -> str:
        """See :class:`~memsluice_lab.figures.adapted.Kept`."""
        name = str(uuid4())
        self._collection.data.insert({"person": person, "text": text}, uuid=name, vector=self._vector(text))
        return name

    def read(self, person: str, name: str) -> str | None:
        """See :class:`~memsluice_lab.figures.adapted.Kept`."""
        found = self._collection.query.fetch_object_by_id(name)
        return None if found is None else str(found.properties["text"])

    def search(self, person: str, question: str, k: int) -> list[str]:
        """See :class:`~memsluice_lab.figures.adapted.Kept`."""
        mine = Filter.by_property("person").equal(person)
        found = self._collection.query.near_vector(self._vector(question), limit=k, filters=mine)
        return [str(one.properties["text"]) for one in found.objects]

    def every(self, person: str) -> list[str]:
        """See :class:`~memsluice_lab.figures.adapted.Kept`."""
        return [str(one.properties["text"]) for one in self._collection.query.fetch_objects(limit=LISTED_MAX).objects]

    def _vector(self, text: str) -> list[float]:
        return [float(part) for part in self._encoder.encode([text])[0]]


def _begun(gated: dict[str, Kept]) -> None:
    """Wait until the workers take records: a first put of each that returns. Raises StateError."""
    began = time.monotonic()
    for name, side in gated.items():
        while True:
            try:
                side.put(PERSON, "first", "Ada has a garden.")
                break
            except Exception as error:
                if time.monotonic() - began > BEGUN_S_MAX:
                    raise StateError(f"{name} remembers nothing: {error}") from error


def _timed(sides: dict[str, Kept], setting: Setting) -> tuple[Times, Times]:
    """Put and search on every side, another one first each time; return the seconds of both, without the first WARM.

    Raises StateError where what was put cannot be read at once, or a search does not find K.
    """
    puts: Times = {name: [] for name in sides}
    searches: Times = {name: [] for name in sides}
    order = list(sides)
    for number in range(WARM + ROUNDS):
        text = text_of(number)
        for name in order[number % len(order) :] + order[: number % len(order)]:
            side, person, k = (sides[name], f"{PERSON}-{number}", 1) if name in WHOLE else (sides[name], PERSON, K)
            try:
                put_s, key = _took(partial(side.put, person, f"k{number}", text))
            except NotRemembered as error:
                if type(error) not in HELD:
                    raise
                setting.say(f"{name}: a plain text was held")
                continue
            if side.read(person, key) != text:
                raise StateError(f"{name} returned from a put that cannot be read")
            search_s, found = _took(partial(side.search, person, f"Who of them is known for number {number}?", k))
            if number >= WARM:
                if len(found) != k:
                    raise StateError(f"{name} found {len(found)} texts of {k}")
                puts[name].append(put_s)
                searches[name].append(search_s)
        if number == WARM:
            setting.say("all sides are warm")
    if few := [name for name, some in puts.items() if len(some) < ROUNDS * TIMED_SHARE]:
        raise StateError(f"{', '.join(few)}: too many plain texts were held")
    return puts, searches


def _took(do: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    done = do()
    return time.perf_counter() - began, done


def _row(name: str, puts: Sequence[float], searches: Sequence[float]) -> tuple[str, str]:
    return name, f"put {_spread(puts)}; search {_spread(searches)}"


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1e3:.1f} ms median, {quantiles(seconds, n=100)[94] * 1e3:.1f} p95"


def _over(puts: Times, searches: Times, name: str) -> str:
    """Return a side's medians over those of what has no gate."""
    return "; ".join(
        f"{plain}: {median(puts[name]) / median(puts[plain]):.1f} ×, "
        f"{median(searches[name]) / median(searches[plain]):.1f} ×"
        for plain in PLAIN
    )


_NOTE = (
    "Real: broker, store, encoder, one worker for all three stages, on one machine. A gated put is signed, "
    "acknowledged by the broker, sealed, screened and landed before it returns; a gated search is verified, and its "
    "event acknowledged, before it returns. The others embed with the same encoder and keep the text, and verify "
    "nothing. Every put, of each side, was read back by its name at once. "
    "MCP's tools read a person's whole graph at each call: there each round is another person's, with one entity."
)
