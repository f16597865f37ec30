"""A reader in the agent's own process, with the log of what landed and without: what it is given after a rollback."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from memsluice.clock import wall_ms
from memsluice.encoder import load_encoder
from memsluice.readers.apart import ApartTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Question, Recaller
from memsluice.stores.opening import open_store
from memsluice.topics import names
from memsluice_lab.figures.bed import Bed
from memsluice_lab.tampering.ways import Case

ROLLED_BACK = ("rolled back", "withdrawn and returned")
"""What is signed by the gate and was current once: no signature tells it from what is current."""


def returned(running: Bed, every: Iterable[Case], *, log: bool) -> Counter[str]:
    """Return how many rolled back cases gave anything but the honest entry, by way; ``log``: as it ships."""
    found = Counter[str]()
    with _reader(running, log=log) as reader:
        for case in every:
            if case.way in ROLLED_BACK:
                asked = Question(case.tenant, case.question, "figures", "ana", "tampered", namespace=case.namespace)
                found[case.way] += [entry.content for entry in reader.ask(asked).entries] != [case.honest]
    return found


@contextmanager
def _reader(running: Bed, *, log: bool) -> Iterator[Recaller]:
    with ExitStack() as opened:
        store = open_store(running.connection, names.WEAVIATE_RECALL)
        opened.callback(store.close)
        freshness = None
        if log:
            topic = ApartTopic(running.connection, names.USER_READER, names.STORE)
            opened.callback(topic.close)
            freshness = FreshnessIndex(topic, running.store.keyring, names.PARTITIONS)
        reader = Recaller(
            store=store, encoder=load_encoder(), keys=running.store.keyring, permits=_nothing, publish=_nothing,
            now_ms=wall_ms, new_id=lambda: "unpublished", freshness=freshness,
        )  # fmt: skip
        opened.callback(reader.close)
        yield reader


def _nothing(_event: object) -> None:
    """Publish nothing, and forbid nothing: what is measured is what the store's answer becomes."""
