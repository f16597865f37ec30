"""mem0's own tests of its memory (``$OUTSIDE/mem0``), with a gated store of ours under the one that they watch.

They put a mock in the place of a vector store, and read what it was called with; here each call goes on to ours. Tests
of a model's answers, of prompts and of entities' scores never reach a store.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock, patch

import pytest

os.environ["MEM0_TELEMETRY"] = "False"  # read when mem0 is imported

import mem0.memory.main  # what their tests patch  # noqa: F401

from memsluice.adapters.mem0 import GatedVectorStore
from memsluice.encoder import Encoder, load_encoder
from memsluice.memory.embedded import EmbeddedGate
from memsluice_lab.outside import borrowed

FOLDER = Path(os.environ["OUTSIDE"]) / "mem0"
module = borrowed.module_of(FOLDER / "test_main.py", ())
_found = borrowed.tests_of(module, ("mocker", "caplog"))
NOBODY = "writes a memory without a user_id: nobody's, which a gated store refuses"
MOCKED = "says itself what its store returns, and writes nothing"
STUBBED = "puts a stub in the place of what writes"
NOT_OURS = {
    **dict.fromkeys(
        [
            f"test_{way}{what}"
            for way in ("", "async_")
            for what in (
                "create_memory_uses_utc_timestamps",
                "create_memory_sets_updated_at",
                "create_memory_preserves_existing_created_at",
                "update_memory_uses_utc_timestamps",
            )
        ],
        NOBODY,
    ),
    "test_TestMetadataNotMutated_create_memory_with_none_metadata": NOBODY,
    "test_search_and_get_all_consistent_after_update": MOCKED,
    "test_add_metadata_cannot_set_identity_fields": STUBBED,
    "test_async_add_metadata_cannot_set_identity_fields": STUBBED,
    "test_add_entity_params_still_set_scope": STUBBED,
    "test_add_without_metadata_is_unaffected": STUBBED,
    "file test_faiss.py": "asks mem0's FAISS provider about its own index, files and mocks",
    "file test_weaviate.py": "asks mem0's Weaviate provider what it calls of a mocked client",
}
"""What does not apply, and why."""
globals().update(borrowed.sorted_out(_found, NOT_OURS))


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """Load the model once."""
    return load_encoder()


@pytest.fixture(autouse=True)
def _gated(tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have each memory that a test builds write through a store on an embedded gate of the test's own."""
    gate = EmbeddedGate.open_local(tenant="suite", home=tmp_path / "home", encoder=encoder)
    build = module._build_memory_instance

    def built(mocker: Any, kind: Any) -> Any:
        memory = build(mocker, kind)
        memory.vector_store = MagicMock(wraps=GatedVectorStore(gate))
        return memory

    monkeypatch.setattr(module, "_build_memory_instance", built)
    yield
    gate.close()


@pytest.fixture
def mocker() -> Iterator[SimpleNamespace]:
    """Give what these tests use of pytest-mock."""
    with ExitStack() as patches:

        def patched(*args: Any, **kwargs: Any) -> Any:
            return patches.enter_context(patch(*args, **kwargs))

        def patched_in(*args: Any, **kwargs: Any) -> Any:
            return patches.enter_context(patch.object(*args, **kwargs))

        patched.object = patched_in  # type: ignore[attr-defined]
        yield SimpleNamespace(MagicMock=MagicMock, Mock=Mock, patch=patched)
