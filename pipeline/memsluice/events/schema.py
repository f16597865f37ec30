"""JSON Schemas (draft 2020-12) of the payloads that producers sign, generated from the models.

``python -m schemas_generator`` writes them, with those of the records between stages, into ``schemas/``.
"""

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from memsluice.events import limits
from memsluice.events.models import MODELS

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DESCRIPTIONS = {
    "id": "Event id, chosen by the producer; unique within the window in which the gate remembers ids (7 days). "
    "A retry keeps it; what else it says must be the same, its time apart.",
    "tenant": "Whose memory this is about. Its murmur2 hash gives the partition.",
    "time": "When it happened, as the producer says: RFC 3339 with an offset. The gate decides by the broker's clock.",
    "agent": "The agent that acts.",
    "principal": "The person on whose behalf it acts.",
    "session": "The agent's session; the platform opens it, and its first event binds it to agent and principal.",
    "namespace": "A partition of the tenant's memory, such as a project.",
    "key": "A keyed write replaces the entry of the same key in the same scope; others are entries of their own.",
    "visibility": "Who may be given the entry: its session, its principal or, once promoted, everybody of the tenant.",
    "content": f"Text, at most {limits.CONTENT_BYTES_MAX} bytes of UTF-8; the default policy allows "
    f"{limits.CONTENT_BYTES_DEFAULT}.",
    "kind": "Free text, or facts that an extractor took out of it: a line each, subject | relation | object.",
    "parents": "Event ids of the entries that this one was made from; an unknown parent taints.",
    "origin": "What the producer says of where the content came from (in an observation: what the session saw). "
    "Trust never rests on it.",
    "claimed_tier": "Lowers the tier that the credential gives (1 operator to 5 web); it can never raise it.",
    "question": f"What the agent asked its memory, at most {limits.QUESTION_BYTES_MAX} bytes of UTF-8.",
    "zone": "guidance: what agents may follow; external: outside content kept as data.",
    "returned": "What the agent was given.",
    "vector": "The question's embedding as searched with: base64 of little-endian float16, 384 of the default encoder.",
    "withheld": "How many entries were found and not returned, by reason; absent where there were none.",
    "named": "Entries were asked for by their names; nothing was searched. Absent where something was.",
    "renews": "An entry that was returned, as its record of memory.accepted.v1 in JSON text: its use may let it hold "
    "longer. Absent where there is none.",
    "digest": "64 hex digits: of what was seen, or of what a command is bound to.",
    "action": "What is ordered.",
    "target": "The event, object, session or policy that the command is about.",
    "expires_at": "The command is void afterwards (RFC 3339).",
    "reason": "For the people who read the audit.",
    "parameters": "Further arguments of the action.",
    "policy": "What a policy file says, as canonical JSON text; an activation without one ends a tenant's own policy.",
    "held": "What a command lets land, as JSON text: of a held write the field `sealed` of its quarantine record, of a "
    "landed entry its record of memory.accepted.v1.",
    "object_id": "UUIDv5 of the stored object.",
    "version": "Offset of the sealed record that decided the object's current version.",
    "event_id": "Id of the write that the object came from.",
    "tier": "Trust tier: 1 operator, 2 user verified, 3 user observed, 4 external tool, 5 external web.",
    "taint": "Whether untrusted content is among its ancestors.",
}
"""What each field means; the JSON Schemas carry it. A test holds it complete."""


def describe(schema: Any, descriptions: Mapping[str, str] = DESCRIPTIONS) -> Any:
    """Add the descriptions of known fields wherever an object's properties have none; return the same schema."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            for name, field in properties.items():
                if isinstance(field, dict) and name in descriptions:
                    field.setdefault("description", descriptions[name])
        for value in schema.values():
            describe(value, descriptions)
    elif isinstance(schema, list):
        for value in schema:
            describe(value, descriptions)
    return schema


def payload_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each event type's payload, by the type's name."""
    by_type: dict[str, dict[str, Any]] = {}
    for event_type, model in MODELS.items():
        _, document = models_json_schema([(model, "validation")])
        definitions = document["$defs"]
        own = definitions.pop(model.__name__)
        by_type[event_type.value] = describe(
            {
                "$schema": DIALECT,
                **own,
                **({"$defs": definitions} if definitions else {}),
            }
        )
    return by_type
