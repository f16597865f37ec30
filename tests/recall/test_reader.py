"""Which entries may be shown: every way in which a store can lie, and the one reason that is given for it."""

import base64
from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recall.selecting import select
from tests.stores.build import RING, STRANGER, T0, axis, entry

from memsluice.envelope.keys import Keyring, KeyState
from memsluice.errors import ConfigError
from memsluice.events.models import Visibility, Zone
from memsluice.keystore.files import keyring_from_bytes, keyring_to_bytes
from memsluice.keystore.store import public_keyring
from memsluice.recall.reader import Current, RecallQuery, VerifiedEntry, judge
from memsluice.recall.withheld import Withheld
from memsluice.stores.base import Scope, StoredObject

ASKED = RecallQuery("acme", Zone.GUIDANCE, Scope("ana", "s-1"), "default", axis(0), T0)


def verdict(item: StoredObject, asked: RecallQuery = ASKED, keyring: Keyring = RING, **options):
    """Return the entry, or the reason it is withheld."""
    return judge(item, asked, keyring, **options)


def test_an_entry_as_landed_is_shown() -> None:
    """What the gate admitted and the store kept comes back with its admission and its similarity."""
    found = verdict(entry("acme", "note", axis(0, towards=1, cosine=0.6)))
    assert isinstance(found, VerifiedEntry)
    assert (found.content, found.admission.event_id) == ("note", "event-1")
    assert found.similarity == pytest.approx(0.8, abs=1e-3)


def lies() -> dict[str, tuple[StoredObject, Withheld]]:
    """Objects as somebody with access to the store could leave them."""
    good, other = entry("acme", "note"), entry("acme", "other", axis(3), event_id="event-2", version=9)
    changed = orjson.loads(good.admission)
    changed["payload"] = orjson.loads(other.admission)["payload"]
    unsigned = {**orjson.loads(good.admission), "signatures": orjson.loads(good.admission)["signatures"][:1]}
    return {
        "no admission": (replace(good, admission=""), Withheld.FORGED),
        "an admission that is a number": (replace(good, admission="7"), Withheld.FORGED),
        "signed with other keys": (entry("acme", "note", ring=STRANGER), Withheld.FORGED),
        "signature over another admission": (replace(good, admission=orjson.dumps(changed).decode()), Withheld.FORGED),
        "gate's own seal, no reader's signature": (
            replace(good, admission=orjson.dumps(unsigned).decode()),
            Withheld.FORGED,
        ),
        "admission of another object": (replace(good, admission=other.admission), Withheld.MOVED),
        "under a new id": (replace(good, object_id=other.object_id), Withheld.MOVED),
        "of another tenant": (replace(entry("globex", "note"), tenant="acme"), Withheld.MOVED),
        "of another zone": (replace(entry("acme", "note", zone=Zone.EXTERNAL), zone=Zone.GUIDANCE), Withheld.MOVED),
        "an id that its admission does not give": (entry("acme", "x", object_id=other.object_id), Withheld.MOVED),
        "tier": (replace(good, tier=1), Withheld.PROPERTY),
        "owner": (replace(good, owner="bo"), Withheld.PROPERTY),
        "visibility": (replace(good, visibility="shared"), Withheld.PROPERTY),
        "namespace": (replace(good, namespace="work"), Withheld.PROPERTY),
        "expiry": (replace(entry("acme", "note", expires_ms=T0 - 1), expires_ms=T0 + 9), Withheld.PROPERTY),
        "version": (replace(good, version=99), Withheld.PROPERTY),
        "event id": (replace(good, event_id="event-9"), Withheld.PROPERTY),
        "content": (replace(good, content="note!"), Withheld.CONTENT),
        "content that is no text": (replace(good, content="\ud800"), Withheld.CONTENT),
        "vector": (replace(good, vector=axis(5)), Withheld.VECTOR),
        "vector, slightly": (replace(good, vector=good.vector + np.float32(0.002)), Withheld.VECTOR),
        "no vector": (replace(good, vector=np.zeros(0, dtype=np.float32)), Withheld.VECTOR),
        "somebody else's": (entry("acme", "note", principal="bo"), Withheld.SCOPE),
        "another session's": (entry("acme", "note", visibility=Visibility.SESSION, session="s-2"), Withheld.SCOPE),
        "somebody else's, in a session that is ours now": (
            entry("acme", "note", visibility=Visibility.SESSION, principal="bo"),
            Withheld.SCOPE,
        ),
        "another namespace's": (entry("acme", "note", namespace="work"), Withheld.SCOPE),
        "expired": (entry("acme", "note", expires_ms=T0), Withheld.EXPIRED),
    }


@pytest.mark.parametrize("name", lies())
def test_what_does_not_hold_is_withheld_for_its_own_reason(name) -> None:
    """Forged, moved, changed, somebody else's, expired: never shown, and counted under what is wrong with it."""
    item, reason = lies()[name]
    assert verdict(item) is reason


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (Current(4, False), None),
        (Current(5, False), Withheld.STALE),
        (Current(4, True), Withheld.WITHDRAWN),
        (Current(5, True), Withheld.WITHDRAWN),
        (Current(3, False), Withheld.UNRECORDED),
        (None, Withheld.UNRECORDED),
    ],
)
def test_only_the_current_version_of_an_object_is_shown(current, expected) -> None:
    """An old version is validly sealed for ever; the log says that it is old, withdrawn, or never landed."""
    item = entry("acme", "note", version=4)
    known = {} if current is None else {item.object_id: current}
    found = verdict(item, current=known)
    assert (None if isinstance(found, VerifiedEntry) else found) is expected


def test_a_revoked_admission_key_vouches_for_nothing_and_a_retired_one_for_what_it_signed() -> None:
    """Rotation keeps old entries readable; revocation takes back everything that the key ever admitted."""
    item = entry("acme", "note")
    assert isinstance(verdict(item, keyring=RING.retire("admission-1")), VerifiedEntry)
    assert verdict(item, keyring=RING.retire("admission-1", KeyState.REVOKED)) is Withheld.FORGED


def test_a_reader_in_an_agents_process_verifies_its_tenant_and_no_other() -> None:
    """With what `keys public --tenant acme` writes, acme's entries are verified whole; for globex the reader says what
    is missing, and stops."""
    reader = keyring_from_bytes(keyring_to_bytes(public_keyring(RING, ["acme"])), "reader.json")
    selection = select([entry("acme", "note"), lies()["content"][0]], ASKED, 5, reader)
    assert [found.content for found in selection.kept] == ["note"]
    assert selection.counts() == {"content": 1}
    with pytest.raises(ConfigError, match="no digest key of tenant globex"):
        select([entry("globex", "note")], replace(ASKED, tenant="globex"), 5, reader)
    with pytest.raises(ConfigError, match="no digest key of tenant acme"):
        select([entry("acme", "note")], ASKED, 5, public_keyring(RING))


def test_the_nearest_are_kept_in_order_whatever_the_store_says() -> None:
    """Similarities are computed from verified vectors: a store that gives a far entry first does not move it up."""
    items = [entry("acme", f"c{n}", axis(n + 1, towards=0, cosine=n / 10), event_id=f"e{n}") for n in range(1, 7)]
    selection = select([*items, lies()["content"][0]], ASKED, 3, RING)
    assert [found.content for found in selection.kept] == ["c6", "c5", "c4"]
    assert selection.counts() == {"content": 1}


@given(st.text(max_size=300))
def test_no_text_in_place_of_an_admission_gets_through_or_breaks_the_reader(text) -> None:
    """Whatever somebody writes there is counted as forged, without an exception."""
    assert verdict(replace(entry("acme", "note"), admission=text)) is Withheld.FORGED


@given(
    st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda c: st.lists(c) | st.dictionaries(st.text(), c))
)
def test_no_json_in_place_of_the_signed_payload_gets_through(value) -> None:
    """A well-formed envelope around any other JSON is forged too."""
    envelope = orjson.loads(entry("acme", "note").admission)
    try:
        payload = orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits
        payload = b"null"
    envelope["payload"] = base64.b64encode(payload).decode()
    assert verdict(replace(entry("acme", "note"), admission=orjson.dumps(envelope).decode())) is Withheld.FORGED
