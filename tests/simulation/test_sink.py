"""The store in memory keeps the contract that FAISS and Weaviate keep."""

import pytest
from tests.stores.contract import OtherEncoderContract, StoreContract

from memsluice_lab.simulation.sink import MemoryStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        """Return an empty store."""
        return MemoryStore()


class TestMemoryStoreOfAnotherEncoder(OtherEncoderContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        """Return an empty store."""
        return MemoryStore()
