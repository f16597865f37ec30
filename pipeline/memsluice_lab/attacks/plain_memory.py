"""A memory without a gate in a real Weaviate: texts go straight into a collection, the k nearest come straight back."""

from collections.abc import Sequence

import numpy as np
import weaviate
from numpy.typing import NDArray
from weaviate.classes.config import Configure, DataType, Property
from weaviate.classes.data import DataObject

from memsluice.errors import StoreError

CONTENT = "content"
BATCH = 200


class PlainMemory:
    """One collection of its own. ``client`` is a weaviate-client that may make collections."""

    def __init__(self, client: weaviate.WeaviateClient, name: str) -> None:
        self._collection = client.collections.create(
            name,
            vector_config=Configure.Vectors.self_provided(),
            properties=[Property(name=CONTENT, data_type=DataType.TEXT)],
        )

    def write(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Insert texts with their vectors, shape (len(texts), d). Raises StoreError where one is not taken."""
        objects = [
            DataObject(properties={CONTENT: text}, vector=vector.tolist())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        for first in range(0, len(objects), BATCH):
            failed = self._collection.data.insert_many(objects[first : first + BATCH]).errors
            if failed:
                raise StoreError(f"the store did not take {len(failed)} texts: {next(iter(failed.values())).message}")

    def ask(self, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the texts of the k nearest, the nearest first."""
        found = self._collection.query.near_vector(vector.tolist(), limit=k).objects
        return [str(one.properties[CONTENT]) for one in found]
