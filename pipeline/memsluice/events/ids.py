"""Deterministic object ids and visibility scopes (nobody overwrites another's entry)."""

import uuid
from functools import lru_cache
from hashlib import sha1, sha256

from memsluice.events.models import Visibility, Zone

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://memsluice.dev/object-id/v1").bytes


def scope_owner(visibility: Visibility, principal: str, session: str) -> str:
    """Return whose scope an entry lives in: the session, the principal, or "" for the whole tenant."""
    return {Visibility.SESSION: session, Visibility.PRINCIPAL: principal, Visibility.SHARED: ""}[visibility]


def scope_tag(tenant: str, visibility: Visibility, owner: str, namespace: str) -> str:
    """Return 16 hex digits that say which entries are searched together, without naming who owns them."""
    return sha256(_parts(tenant, visibility.value, owner, namespace)).hexdigest()[:16]


def object_id(
    *, tenant: str, zone: Zone, visibility: Visibility, owner: str, namespace: str, key: str | None, event_id: str
) -> str:
    """Return the UUIDv5 over the length-prefixed parts, as text.

    A keyed write replaces the entry of the same key in the same scope; an unkeyed one is an entry of its own. Length
    prefixes keep ("ab", "c") and ("a", "bc") apart; the last part says whether it is a key or an event id.
    """
    last = _parts("key", key) if key is not None else _parts("event", event_id)
    scope = _scope(tenant, zone, visibility, owner, namespace)
    # uuid.uuid5 gives the same, by way of an object that nobody needs and at twice the cost
    name = sha1(scope + last, usedforsecurity=False).hexdigest()
    return f"{name[:8]}-{name[8:12]}-5{name[13:16]}-{'89ab'[int(name[16], 16) & 3]}{name[17:20]}-{name[20:32]}"


@lru_cache(1_024)
def _scope(*parts: str) -> bytes:
    return _NAMESPACE + _parts(*parts)


def _parts(*parts: str) -> bytes:
    return "".join([f"{len(part.encode())}:{part}" for part in parts]).encode()
