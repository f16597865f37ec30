"""The encoder that ships: a process loads it once, and it reads a text once."""

from functools import cache

from memsluice.encoder import load_encoder
from memsluice_lab.demo.caching_encoder import MemoEncoder


@cache
def minilm() -> MemoEncoder:
    """Return all-MiniLM-L6-v2 as the product runs it, on one thread; texts repeat, so their vectors are remembered."""
    return MemoEncoder(load_encoder(threads=1))
