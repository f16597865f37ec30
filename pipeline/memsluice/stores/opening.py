"""Which vector store is opened: another store is another choice here. Libraries load when a store is opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

from memsluice.deployment import sqlite
from memsluice.deployment.connection import Connection
from memsluice.deployment.paths import private_file
from memsluice.envelope.space import Space
from memsluice.errors import StoreError
from memsluice.stores.base import VectorStore

READING_TIMEOUT_S = 5.0


def open_store(connection: Connection, user: str) -> VectorStore:
    """Return the stack's store, opened as one of its users. Raises ConfigError without the user's key."""
    from memsluice.stores.weaviate.store import WeaviateStore

    return WeaviateStore.of(connection, user)


def embedded_space(file: Path) -> Space | None:
    """Return the encoder of a file's vectors, None where it has none; nothing is written. Raises StoreError."""
    from memsluice.stores.faiss.rows import space_of_file

    try:
        with closing(sqlite.for_reading(file, READING_TIMEOUT_S)) as database:
            return space_of_file(database)
    except sqlite3.Error as error:
        raise StoreError(sqlite.in_words("the embedded store", file, error)) from None


def open_embedded(file: Path) -> VectorStore:
    """Return the embedded store in a file, readable by its owner alone; it is made where there is none."""
    from memsluice.stores.faiss.store import FaissStore

    return FaissStore(private_file(file))
