"""Which vector store is opened: another store is another choice here. Libraries load when a store is opened."""

from pathlib import Path

from memsluice.deployment.connection import Connection
from memsluice.deployment.paths import private_file
from memsluice.stores.base import VectorStore


def open_store(connection: Connection, user: str) -> VectorStore:
    """Return the stack's store, opened as one of its users. Raises ConfigError without the user's key."""
    from memsluice.stores.weaviate.store import WeaviateStore

    return WeaviateStore.of(connection, user)


def open_embedded(file: Path) -> VectorStore:
    """Return the embedded store in a file, readable by its owner alone; it is made where there is none."""
    from memsluice.stores.faiss.store import FaissStore

    return FaissStore(private_file(file))
