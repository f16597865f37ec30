"""CrewAI's own tests of its memory (``$OUTSIDE/crewai/memory``), with a gated storage of ours in each that it makes.

What makes it is CrewAI's factory. Each memory is given our embedder, which asks theirs as well: theirs counts its
calls, and makes vectors from which no question can be read.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest

# isort: split - what comes first says where CrewAI may write when it is imported
from crewai.memory.storage.factory import set_memory_storage_factory
from crewai.memory.unified_memory import Memory

from memsluice import Session
from memsluice.adapters.crewai import GatedStorage, embedder
from memsluice.encoder import Encoder, load_encoder
from memsluice.memory.embedded import EmbeddedGate
from memsluice_lab.crews import at_home
from memsluice_lab.outside import borrowed

FOLDER = Path(os.environ["OUTSIDE"]) / "crewai" / "memory"
WHOSE = Session("suite", "agent", "ada", "run-1")
LANCE = "crewai.memory.storage.lancedb_storage"
NOT_OURS = {
    "test_lancedb_save_search": "asks a storage with a vector of four numbers, which has no question in it",
    "test_batch_consolidation_deduplicates_against_storage": "asks what becomes of two texts that its embedder makes "
    "one vector of; the gate embeds",
    "test_memory_analysis_llm_is_isolated_from_streaming_agent_llm": "asks about CrewAI's model, and stores nothing",
    "test_memory_extract_memories_returns_list_from_llm": "asks about CrewAI's model, and stores nothing",
    "test_memory_extract_memories_empty_content_returns_empty_list": "asks about CrewAI's model, and stores nothing",
    "file test_storage_factory.py": "asks CrewAI's factory about objects that are no storages",
    "file test_concurrent_storage.py": "is skipped by its own authors",
}
"""What does not apply, and why."""
_found = borrowed.tests_of(
    borrowed.module_of(FOLDER / "test_unified_memory.py", ()),
    ("tmp_path", "monkeypatch", "mock_embedder", "lancedb_path"),
)
globals().update(borrowed.sorted_out(_found, NOT_OURS))


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """Load the model once."""
    return load_encoder()


@pytest.fixture(autouse=True)
def _gated(tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give every memory, and CrewAI's name of its default storage, a storage on an embedded gate of the test's own."""
    gate = EmbeddedGate.open_local(tenant=WHOSE.tenant, home=tmp_path / "home", encoder=encoder)
    factory = GatedStorage.factory(gate, WHOSE)
    lance: Any = ModuleType(LANCE)
    lance.LanceDBStorage = lambda path=None, vector_dim=None: factory("lancedb")
    monkeypatch.setitem(sys.modules, LANCE, lance)
    begin = Memory.model_post_init

    def begun(self: Memory, context: Any) -> None:
        begin(self, context)
        theirs = self.embedder

        def both(texts: list[str]) -> list[list[float]]:
            theirs(texts)
            return embedder(texts)

        self._embedder_instance = both

    monkeypatch.setattr(Memory, "model_post_init", begun)
    set_memory_storage_factory(factory)
    with at_home(tmp_path / "crewai"):
        yield
    set_memory_storage_factory(None)
    gate.close()


@pytest.fixture
def mock_embedder() -> MagicMock:
    """Give an embedder as theirs: one vector for all texts."""
    return MagicMock(side_effect=lambda texts: [[0.1] * 4 for _ in texts])


@pytest.fixture
def lancedb_path(tmp_path: Path) -> Path:
    """Give a place for a database."""
    return tmp_path / "mem"
