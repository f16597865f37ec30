"""What is worked out once a process and not once a history: pure functions of bytes and keys.

Histories have most of their events in common, and every process of a history reads the same records again. A function
here gives for the same arguments what the gate's own gave the first time, so a history is the same with and without
(a test holds it to that); what a bug is planted in is never one of them.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from memsluice.envelope import codec, records
from memsluice.envelope.keys import Ed25519Key, HmacKey, Keyring
from memsluice.events import cloudevent
from memsluice.gate.checks import authenticity, sensitive
from memsluice.gate.detectors.memsad import state as memsad_state
from memsluice.stores import agreement
from memsluice.stores.base import StoredObject

MOST: Final = 20_000
"""Results of one function that are kept; then it begins anew."""

Key = Callable[..., Hashable]


def remembering(function: Callable[..., Any], key: Key | None = None) -> Callable[..., Any]:
    """Return a function that works out each result once; what raises is tried again. ``key``: of the arguments."""
    known: dict[Hashable, Any] = {}

    def again(*arguments: Any) -> Any:
        name = arguments if key is None else key(*arguments)
        try:
            return known[name]
        except KeyError:
            if len(known) >= MOST:
                known.clear()
            result = known[name] = function(*arguments)
            return result

    return again


def _object(item: StoredObject, text: str | None, keyring: Keyring) -> Hashable:
    return item.tenant, item.object_id, item.zone, text, keyring


def _vector(vector: codec.Vector) -> Hashable:
    return vector.tobytes()


def _secret(self: HmacKey, message: bytes) -> Hashable:
    return self._secret, message


_CHANGES: Final = tuple(
    (owner, name, remembering(getattr(owner, name), key))
    for owner, name, key in (
        (HmacKey, "sign", _secret),
        (Ed25519Key, "sign", None),
        (Ed25519Key, "verify", None),
        (cloudevent, "read", None),
        (authenticity, "parse_payload", None),
        (sensitive, "found", None),
        (codec, "vector_from_bytes", None),
        (codec, "sketch", None),
        (memsad_state, "coarse_to_text", _vector),
        (memsad_state, "coarse_from_text", None),
        (records, "accepted_from_bytes", None),
        (agreement, "admitted", _object),
        (records, "stored_of_any", None),
    )
)


@contextmanager
def remembered() -> Iterator[None]:
    """Remember for as long as this lasts, and what was remembered before."""
    with ExitStack() as stack:
        for owner, name, function in _CHANGES:
            stack.enter_context(patch.object(owner, name, function))
        yield
