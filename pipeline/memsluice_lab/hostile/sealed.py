"""Targets between the stages: what the gate itself seals, damaged around the seal and, under a good one, inside."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from memsluice.envelope import codec, dsse, records, seals
from memsluice.errors import MalformedEvent, SealError, StateError
from memsluice.events.names import VERDICT
from memsluice.recall.reader import RecallQuery, judge
from memsluice.stores.base import Scope, StoredObject, from_accepted
from memsluice_lab.hostile import mutate
from memsluice_lab.hostile.judge import Target
from memsluice_lab.hostile.specimens import NOW_MS, TENANT, Specimens


class Between:
    """Draws hostile records from those that the stages wrote."""

    def __init__(self, specimens: Specimens) -> None:
        self._all = specimens
        self._keyring = specimens.keyring

    def under_seal(self, values: tuple[bytes, ...]) -> Callable[[random.Random], bytes]:
        """Return what draws an envelope that is damaged, or that holds over a payload that is."""

        def draw(chance: random.Random) -> bytes:
            value = chance.choice(values)
            if chance.random() < 0.4:
                return mutate.json_bytes(chance, value)
            envelope = orjson.loads(value)
            return orjson.dumps(self._closed(envelope["payloadType"], dsse.parse(envelope).payload, chance))

        return draw

    def _closed(self, payload_type: str, payload: bytes, chance: random.Random) -> dict[str, Any]:
        changed = mutate.canonical_or(chance, mutate.twisted(chance, orjson.loads(payload)))
        return dsse.sign(payload_type, changed, [self._keyring.tenant_key(self._all.kid, TENANT)])

    def _admitted(self, envelope: dict[str, Any], chance: random.Random) -> dict[str, Any]:
        changed = mutate.canonical_or(chance, mutate.twisted(chance, orjson.loads(dsse.parse(envelope).payload)))
        signers = [self._keyring.tenant_key(self._all.kid, TENANT), self._keyring.direct("lab-admission")]
        return dsse.sign(envelope["payloadType"], changed, signers)

    def landing(self, chance: random.Random) -> bytes:
        """Return a record of memory.accepted.v1: an entry or a withdrawal, its admission hostile under a good seal."""
        value = orjson.loads(chance.choice((*self._all.accepted, *self._all.withdrawals)))
        match chance.randrange(3):
            case 0:
                return mutate.json_bytes(chance, orjson.dumps(value))
            case 1 if "withdrawal" in value:
                sealed = value["withdrawal"]
                value = {"withdrawal": self._closed(sealed["payloadType"], dsse.parse(sealed).payload, chance)}
            case 1:
                value["admission"] = self._admitted(value["admission"], chance)
            case _:
                value = mutate.twisted(chance, value)
        return mutate.canonical_or(chance, value)

    def lying(self, chance: random.Random) -> StoredObject:
        """Return an object as a store gives it back, with its admission or its properties changed."""
        entry = chance.choice(self._all.landed)
        item = from_accepted(entry)
        text = entry.envelope if chance.random() < 0.5 else self._admitted(entry.envelope, chance)
        data = orjson.dumps(text)
        if chance.random() < 0.5:
            data = mutate.json_bytes(chance, data)
        item = replace(item, admission=data.decode("utf-8", "replace"))
        if chance.random() < 0.3:
            field = chance.choice(("content", "owner", "namespace", "event_id", "visibility", "object_id"))
            changed: dict[str, Any] = {field: chance.choice(mutate.TEXTS)}
            item = replace(item, **changed)
        if chance.random() < 0.2:
            item = replace(item, vector=item.vector[: chance.choice((0, 2, 383))])
        return item

    def recalled(self, item: StoredObject) -> Any:
        """Return what a recall makes of an object: an entry, or why it is withheld."""
        admission = self._all.landed[0].admission
        question = self._all.landed[0].vector()
        asked = RecallQuery(
            tenant=TENANT, zone=admission.zone, namespace=admission.namespace, question=question,
            scope=Scope(admission.principal, admission.session), now_ms=NOW_MS, model=admission.model,
        )  # fmt: skip
        return judge(item, asked, self._keyring)

    # --- readers, and what writes again what they read ---

    def sealed(self, data: bytes) -> seals.Sealed:
        """Return a sealed event, its vector looked at."""
        found = seals.sealed_from_bytes(self._keyring, TENANT, data)
        found.vector()
        return found

    def sealed_again(self, found: seals.Sealed) -> seals.Sealed:
        """Return it, written and read."""
        return seals.sealed_from_bytes(
            self._keyring, found.tenant, seals.sealed_to_bytes(self._keyring, self._all.kid, found)
        )

    def stored_again(self, found: records.StoreRecord) -> records.StoreRecord:
        """Return it, written and read."""
        return records.stored_from_bytes(
            self._keyring, TENANT, records.stored_to_bytes(self._keyring, self._all.kid, found)
        )

    def landing_again(self, found: records.Accepted | records.StoreRecord) -> Any:
        """Return it, written and read."""
        if isinstance(found, records.StoreRecord):
            data = records.withdrawal_to_bytes(self._keyring, self._all.kid, found)
        else:
            data = records.accepted_to_bytes(found.envelope, found.content, found.vector_text)
        return records.landing_from_bytes(self._keyring, TENANT, data)

    def verdict_again(self, found: Any) -> Any:
        """Return a verdict as it is written: the very fields that it was read with."""
        data = seals.close(self._keyring, self._all.kid, TENANT, VERDICT, found.to_json())
        return records.verdict_from_bytes(self._keyring, TENANT, data)


def _text_of(chance: random.Random, specimens: Specimens) -> str:
    text = chance.choice(specimens.landed).vector_text
    return (
        mutate.damaged(chance, text.encode()).decode("utf-8", "replace")
        if chance.random() < 0.8
        else chance.choice(mutate.TEXTS)
    )


def _vector(text: str) -> bytes:
    return codec.vector_to_bytes(codec.vector_from_text(text))


def targets(specimens: Specimens) -> list[Target]:
    """Return the targets between the stages."""
    some, ring, refused = Between(specimens), specimens.keyring, (SealError,)

    def landing(data: bytes) -> Any:
        return records.landing_from_bytes(ring, TENANT, data)

    def stored(data: bytes) -> Any:
        return records.stored_from_bytes(ring, TENANT, data)

    def verdict(data: bytes) -> Any:
        return records.verdict_from_bytes(ring, TENANT, data)

    def held(data: bytes) -> Any:
        return records.held_from_bytes(ring, TENANT, data)

    def any_stored(data: bytes) -> Any:
        return records.stored_of_any(ring, data)

    sealed, store_records = some.under_seal(specimens.sealed), some.under_seal(specimens.stored)
    audit, quarantine = some.under_seal(specimens.audit), some.under_seal(specimens.held)
    return [
        Target("sealed event", 10, sealed, some.sealed, (SealError, MalformedEvent), some.sealed_again),
        Target("accepted or withdrawal", 8, some.landing, landing, refused, some.landing_again),
        Target("store record", 6, store_records, stored, refused, some.stored_again),
        Target("store record, by a reader", 4, store_records, any_stored, ()),
        Target("verdict", 8, audit, verdict, refused, some.verdict_again),
        Target("held write", 4, quarantine, held, refused),
        Target("object of the store, at recall", 6, some.lying, some.recalled, ()),
        Target("vector", 3, lambda chance: _text_of(chance, specimens), _vector, (MalformedEvent,)),
        Target("sketch", 2, lambda chance: _text_of(chance, specimens), codec.sketch_words, (StateError,)),
    ]
