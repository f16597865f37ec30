"""The real encoder, loaded once."""

from tests.recall.conftest import encoder

__all__ = ["encoder"]
