"""The plain script that guarded ingestion is compared with: consume, encode, insert. No gate, no seal, no order.

Run as ``python -m memsluice_lab.figures.plain HOME [own]``: with the encoder that people write first, or with the
gate's own. Prints ``ready``, then a JSON line for every insert that the store has acknowledged: the event ids, and the
time (Unix ms).
"""

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import weaviate
from confluent_kafka import Consumer, TopicPartition
from numpy.typing import NDArray
from weaviate.classes.config import Configure, DataType, Property
from weaviate.classes.data import DataObject

from memsluice.deployment.connection import Connection
from memsluice.encoder import load_encoder
from memsluice.envelope import dsse
from memsluice.stores.weaviate.admin import client
from memsluice.stores.weaviate.store import address_of
from memsluice.topics import names
from memsluice_lab.baselines import OWN_BATCHES, PLAIN_BATCH, plain_encode

OWN = "own"
COLLECTION = "PlainMemories"
WAIT_S = 0.01
WRITE = b"memory.write.v1"


def main() -> None:
    """Consume from the present end of the topic until killed."""
    connection = Connection.load(Path(sys.argv[1]))
    consumer = _consumer(connection)
    encode, batch = (_own(), max(OWN_BATCHES)) if sys.argv[2:] == [OWN] else (plain_encode, PLAIN_BATCH)
    encode(["warm"])
    with client(address_of(connection, names.WEAVIATE_ADMIN)) as store:
        collection = _collection(store)
        print("ready", flush=True)
        waiting: list[dict[str, Any]] = []
        while True:
            messages = [m for m in consumer.consume(batch, WAIT_S) if m.error() is None]
            waiting += [orjson.loads(dsse.parse(orjson.loads(m.value())).payload) for m in messages if _is_write(m)]
            if not waiting or (messages and len(waiting) < batch):
                continue  # full batches under load, which either encoder is best at; at once where nothing more comes
            writes, waiting = waiting[:batch], waiting[batch:]
            vectors = encode([write["content"] for write in writes])
            objects = [
                DataObject(properties={"content": w["content"], "tenant": w["tenant"]}, vector=v.tolist())
                for w, v in zip(writes, vectors, strict=True)
            ]
            failed = collection.data.insert_many(objects).errors
            landed = [write["id"] for number, write in enumerate(writes) if number not in failed]
            print(json.dumps({"ids": landed, "ms": time.time_ns() // 1_000_000}), flush=True)


def _own() -> Callable[[list[str]], NDArray[np.float32]]:
    """Return the gate's own encoder at its best: a part of the batch for each core, as *seal* gives each a batch."""
    cores, encoder = len(os.sched_getaffinity(0)), load_encoder(threads=1)
    threads = ThreadPoolExecutor(cores)

    def encode(texts: list[str]) -> NDArray[np.float32]:
        parts = [texts[at::cores] for at in range(min(cores, len(texts)))]
        found = np.empty((len(texts), encoder.dimensions), np.float32)
        for at, vectors in enumerate(threads.map(encoder.encode, parts)):
            found[at::cores] = vectors
        return found

    return encode


def _consumer(connection: Connection) -> Any:
    settings = {"group.id": "memsluice-plain", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
    consumer = Consumer({**connection.confluent(names.USER_ADMIN), **settings})
    places = [TopicPartition(names.EVENTS, number) for number in range(names.PARTITIONS)]
    consumer.assign(
        [
            TopicPartition(place.topic, place.partition, consumer.get_watermark_offsets(place, timeout=10)[1])
            for place in places
        ]
    )
    return consumer


def _is_write(message: Any) -> bool:
    return ("ce_type", WRITE) in (message.headers() or ())


def _collection(store: weaviate.WeaviateClient) -> Any:
    if not store.collections.exists(COLLECTION):
        store.collections.create(
            COLLECTION,
            vector_config=Configure.Vectors.self_provided(),
            properties=[
                Property(name="content", data_type=DataType.TEXT),
                Property(name="tenant", data_type=DataType.TEXT),
            ],
        )
    return store.collections.use(COLLECTION)


if __name__ == "__main__":
    main()
