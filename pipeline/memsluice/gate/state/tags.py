"""Short stand-ins for names, in rows of which there are many."""

from functools import lru_cache
from hashlib import sha256


@lru_cache(4_096)
def tag(name: str) -> str:
    """Return 12 hex digits that stand for a session or a principal."""
    return sha256(name.encode()).hexdigest()[:12]
