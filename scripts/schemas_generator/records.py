"""JSON Schemas of the signed envelope, of the records between the stages, and of a dead letter's last header."""

from typing import Any

from pydantic import TypeAdapter

from memsluice.envelope.records import StoreRecord
from memsluice.envelope.seals import Admission, Sealed
from memsluice.envelope.verdict import Verdict
from memsluice.events import limits
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.schema import DESCRIPTIONS, DIALECT, describe
from memsluice.stages import dead_letter
from schemas_generator.descriptions import RECORDS

ENVELOPE = "dsse-envelope"
BASE64 = {"type": "string", "contentEncoding": "base64"}
SIGNED = {
    "memsluice.sealed.v1": (Sealed, "What *seal* authenticated, labelled and embedded: *screen*'s only input."),
    "memsluice.admission.v1": (Admission, "What *screen* admits: all of a stored entry that may not change unseen."),
    "memsluice.verdict.v1": (Verdict, "One decision, complete; a tenant's verdicts are a hash chain."),
    "memsluice.stored.v1": (StoreRecord, "An object's current version, or its withdrawal."),
    "memsluice.withdrawal.v1": (
        StoreRecord,
        "A command's order to take an object out of the store; withdrawn is true.",
    ),
}
"""Payloads that the gate signs: the name in their payload type, the dataclass, and what it is."""
_LEFT_OUT = {(StoreRecord, "scope"), (StoreRecord, "place"), (Sealed, "waited"), (Verdict, "waited")}
"""Fields that a record does not have where they are not known, or say nothing."""


def record_schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas by the name of their file."""
    schemas = {name: _signed(name, kind, text) for name, (kind, text) in SIGNED.items()}
    schemas[ENVELOPE] = _envelope()
    schemas["memsluice.held.v1"] = _document(
        "memsluice.held.v1",
        "A held write: the sealed event as it was, and why it is held.",
        {
            "sealed": {**envelope_of("memsluice.sealed.v1"), "description": "The sealed event's own envelope."},
            "verdict": {"$ref": "memsluice.verdict.v1.json"},
        },
    )
    schemas["memsluice.accepted.v1"] = _document(
        "memsluice.accepted.v1",
        "One entry to land. The admission's digests cover content and vector.",
        {
            "admission": {
                **envelope_of("memsluice.admission.v1"),
                "description": "HMAC for the gate, Ed25519 for readers.",
            },
            "content": {"type": "string", "description": "The entry's text."},
            "vector": {**BASE64, "description": "384 little-endian float16 of a unit vector."},
        },
    )
    schemas["memsluice.withdrawn.v1"] = _document(
        "memsluice.withdrawn.v1",
        "An object to take out of the store; on the topic of the entries to land, in their order.",
        {"withdrawal": {**envelope_of("memsluice.withdrawal.v1"), "description": "HMAC of the gate."}},
    )
    schemas["memsluice.dead-letter.v1"] = _dead_letter()
    return schemas


def envelope_of(name: str) -> dict[str, Any]:
    """Return the schema of an envelope whose payload has the schema ``name``; its payload type carries that name."""
    return {
        "allOf": [{"$ref": f"{ENVELOPE}.json"}],
        "properties": {
            "payloadType": {"const": f"application/vnd.{name}+json"},
            "payload": {**BASE64, "contentMediaType": "application/json", "contentSchema": {"$ref": f"{name}.json"}},
        },
    }


def _document(
    name: str, description: str, properties: dict[str, Any], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "$schema": DIALECT,
        "title": name,
        "description": description,
        "type": "object",
        "required": [one for one in properties if one not in optional],
        "properties": properties,
        "additionalProperties": False,
    }


def _signed(name: str, kind: Any, description: str) -> dict[str, Any]:
    schema = _closed(TypeAdapter(kind).json_schema(mode="serialization"))
    schema["required"] = [one for one in schema["required"] if (kind, one) not in _LEFT_OUT]
    schema |= {"title": name, "description": description}
    return {"$schema": DIALECT, **describe(schema, {**DESCRIPTIONS, **RECORDS})}


def _closed(schema: Any) -> Any:
    """Say that objects have no other fields, and that every field is there: a dataclass writes all of them."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            schema.setdefault("additionalProperties", False)
            schema["required"] = list(schema["properties"])
        for value in schema.values():
            _closed(value)
    elif isinstance(schema, list):
        for value in schema:
            _closed(value)
    return schema


def _envelope() -> dict[str, Any]:
    signature = {
        "type": "object",
        "required": ["keyid", "sig"],
        "properties": {
            "keyid": {"type": "string", "maxLength": limits.ID_CHARS_MAX, "description": "Which key signed."},
            "sig": {**BASE64, "description": "Signature over DSSE's pre-authentication encoding."},
        },
    }
    return {
        "$schema": DIALECT,
        "title": "DSSE envelope v1",
        "description": "Dead Simple Signing Envelope: exact payload bytes, their type, and signatures over both. "
        "Events have one signature, commands one or more; no key signs twice, and no JSON key is repeated.",
        "type": "object",
        "required": ["payload", "payloadType", "signatures"],
        "properties": {
            "payload": {**BASE64, "description": "The signed bytes."},
            "payloadType": {"type": "string", "description": "What the bytes are: one type a purpose."},
            "signatures": {
                "type": "array",
                "minItems": 1,
                "maxItems": limits.APPROVALS_MAX,
                "items": signature,
                "description": "One a key; every one must hold.",
            },
        },
    }


def _dead_letter() -> dict[str, Any]:
    text = {"type": "string"}
    number = {"type": "integer", "minimum": 0}
    return _document(
        "memsluice.dead-letter.v1",
        f"Value of the header {DEAD_LETTER_HEADER}, which the gate appends last. Key, value and all other headers of a "
        "dead letter are the original's, byte for byte; what is large comes in parts, each with this header.",
        {
            "reason": {**text, "description": "Stable reason code, such as malformed or forged_signature."},
            "field": {**text, "description": "The offending field, header or part; empty for the whole record."},
            "detail": {**text, "description": "Why, in words that quote nothing of the input."},
            "topic": {**text, "description": "Where the original lies."},
            "partition": number,
            "offset": number,
            "append_ms": {**number, "description": "When the broker appended the original (Unix ms)."},
            "kind": {
                "enum": [dead_letter.VALUE, dead_letter.HEAD],
                "description": "What this record's value is a part of: the original's value, or a JSON document "
                '{"key", "headers": [[name, value], ...]} with key and header values in base64 or null.',
            },
            "part": {"type": "integer", "minimum": 1, "description": "Number of this part, of its kind, from 1."},
            "parts": {"type": "integer", "minimum": 1, "description": "How many parts of its kind there are."},
            "value_bytes": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Size of the original's value; null where it was null.",
            },
            "head_parts": {
                **number,
                "description": "Parts of kind head; 0: each part carries the original key and headers itself.",
            },
            "kept": {
                "const": False,
                "description": "Only of a note, a record without key, value and other headers: its sender has more "
                "dead letters than are kept of it in a day. The original lies in its intake topic alone.",
            },
            "digest": {
                **text,
                "pattern": "^[0-9a-f]{64}$",
                "description": "Only of a note: HMAC of the original's key, value and headers, by which it is known "
                "again.",
            },
        },
        optional=("kept", "digest"),
    )
