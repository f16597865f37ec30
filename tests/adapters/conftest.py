"""The embedded gate of the memory's tests."""

from tests.memory.conftest import encoder, gate

__all__ = ["encoder", "gate"]
