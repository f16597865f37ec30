"""The AsyncAPI 3.0 document: channels are the topics as ``topics/*.yaml`` has them, messages what lies on them."""

from collections.abc import Sequence
from typing import Any

from memsluice.events.names import (
    DEAD_LETTER_HEADER,
    DECISION_HEADER,
    DSSE_CONTENT_TYPE,
    PAYLOAD_DIGEST,
    REASON_HEADER,
    TARGET_HEADER,
    TRACEPARENT,
    EventType,
)
from memsluice.topics import names
from memsluice.topics.spec import TopicSpec
from schemas_generator.records import ENVELOPE

ASYNCAPI = "3.0.0"
VERSION = "1.0.0"
"""Of the wire format, which the names of topics and types carry as v1."""
BINDING = "0.5.0"
SCHEMA_FORMAT = "application/schema+json;version=draft-2020-12"
EVENT_ID_HEADER = "memsluice-event-id"

_EVENTS = (EventType.WRITE, EventType.RECALL, EventType.OBSERVATION, EventType.COMMAND)
_TITLES = {
    EventType.WRITE: "Something wants to be remembered",
    EventType.RECALL: "An agent asked its memory",
    EventType.OBSERVATION: "A session was opened, or saw outside content",
    EventType.COMMAND: "An order about what is held or landed; among the events, a producer's appeal",
}
_SIGNED = {
    names.SEALED: ("memsluice.sealed.v1", "An authenticated event, or the marker of a dead letter"),
    names.STORE: ("memsluice.stored.v1", "An object's current version, or its withdrawal"),
    names.QUARANTINE: ("memsluice.held.v1", "A held write"),
    names.AUDIT: ("memsluice.verdict.v1", "A decision"),
}
_RECEIVES = {
    names.EVENTS: ("seal", "Events of agents, readers and runtimes enter the gate."),
    names.COMMANDS: ("seal", "Operators' and reviewers' commands enter the gate."),
    names.SEALED: ("screen", "The one ordered input of a tenant is decided."),
    names.ACCEPTED: ("land", "Entries are landed in the store, or taken out of it."),
}
_SENDS = {
    names.SEALED: ("seal", "Every intake record gives exactly one sealed record."),
    names.DEAD_LETTER: ("seal", "What could not be read or authenticated is kept."),
    names.ACCEPTED: ("screen", "What was admitted or withdrawn goes to the store."),
    names.QUARANTINE: ("screen", "What is held waits for a person."),
    names.AUDIT: ("screen", "Every decision is recorded."),
    names.STORE: ("land", "What landed, or was withdrawn, is made known."),
}


def document(topics: Sequence[TopicSpec]) -> dict[str, Any]:
    """Return the document; ``topics`` are all topics, of which those that carry no events are left out: Faust's own,
    the one about parked partitions, which is between workers and operators, and *seal*'s own overflow."""
    own = {topic.name: topic for topic in topics if topic.name.startswith("memory.")}
    for name in (names.PARTITION_STATES, names.OVERFLOW):
        own.pop(name, None)
    messages = _messages()
    return {
        "asyncapi": ASYNCAPI,
        "info": {
            "title": "memsluice",
            "version": VERSION,
            "description": "A write gate for the long-term memory of LLM agents. Producers publish signed CloudEvents "
            "(Kafka binary mode; structured mode is read too); the stages pass on sealed records.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "kafka": {
                "host": "{bootstrap}",
                "protocol": "kafka-secure",
                "description": "Kafka 4 with SCRAM and access lists; topics are never created by use.",
                "variables": {"bootstrap": {"description": "host:port of a broker", "default": "localhost:9092"}},
                "security": [{"$ref": "#/components/securitySchemes/scram"}],
            }
        },
        "channels": {name: _channel(topic, messages) for name, topic in own.items()},
        "operations": _operations(own),
        "components": {
            "securitySchemes": {
                "scram": {"type": "scramSha512", "description": "One user a role; topics/*.yaml says who may do what."}
            },
            "messages": {name: body for by_name in messages.values() for name, body in by_name.items()},
        },
    }


def _messages() -> dict[str, dict[str, Any]]:
    """Return the messages of each topic by name."""
    by_topic: dict[str, dict[str, Any]] = {
        names.EVENTS: {kind.value: _cloud_event(kind) for kind in _EVENTS},
        names.COMMANDS: {EventType.COMMAND.value: _cloud_event(EventType.COMMAND)},
        names.ACCEPTED: {
            "memsluice.accepted.v1": _in_order("memsluice.accepted.v1", "An entry to land"),
            "memsluice.withdrawn.v1": _in_order("memsluice.withdrawn.v1", "An object to take out of the store"),
        },
        names.DEAD_LETTER: {"memsluice.dead-letter.v1": _dead_letter()},
    }
    for topic, (name, title) in _SIGNED.items():
        key = "Object id" if topic == names.STORE else "Tenant"
        key += "; empty for the marker of a dead letter" if topic == names.SEALED else ""
        by_topic[topic] = {name: _message(name, title, _envelope(name), _gate_headers(), key, DSSE_CONTENT_TYPE)}
    return by_topic


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"schemaFormat": SCHEMA_FORMAT, "schema": schema}


def _file(name: str) -> dict[str, str]:
    return {"$ref": f"./schemas/{name}.json"}


def _envelope(name: str) -> dict[str, Any]:
    """Return the schema of an envelope whose payload, base64 in it, has the schema ``name``."""
    return {
        "allOf": [_file(ENVELOPE)],
        "properties": {
            "payloadType": {"const": f"application/vnd.{name}+json"},
            "payload": {
                "contentEncoding": "base64",
                "contentMediaType": "application/json",
                "contentSchema": _file(name),
            },
        },
    }


def _message(
    name: str, title: str, payload: dict[str, Any], headers: dict[str, Any], key: str, content_type: str
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "contentType": content_type,
        "headers": _schema(headers),
        "payload": _schema(payload),
        "bindings": {"kafka": {"key": {"type": "string", "description": key}, "bindingVersion": BINDING}},
    }


def _header(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _trace() -> dict[str, Any]:
    return _header("W3C Trace Context, version 00.", pattern="^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")


def _cloud_event(kind: EventType) -> dict[str, Any]:
    properties = {
        "ce_specversion": {"const": "1.0"},
        "ce_id": _header("The signed payload's id."),
        "ce_source": _header("Who says so; trust rests on the signature alone.", maxLength=256),
        "ce_type": {"const": kind.value},
        "ce_time": _header("The signed payload's time.", format="date-time"),
        "ce_partitionkey": _header("The tenant."),
        f"ce_{PAYLOAD_DIGEST}": _header(
            "SHA-256 of the signed payload's exact bytes, optional and unsigned: it tells tampered from forged.",
            pattern="^[0-9a-f]{64}$",
        ),
        "content-type": _header("Of the value.", examples=[DSSE_CONTENT_TYPE]),
        TRACEPARENT: _trace(),
    }
    headers = {
        "type": "object",
        "description": "CloudEvents 1.0, Kafka binding, binary mode. None may be repeated with another value.",
        "required": ["ce_specversion", "ce_id", "ce_source", "ce_type"],
        "properties": properties,
    }
    return _message(kind.value, _TITLES[kind], _envelope(kind.value), headers, "Tenant", DSSE_CONTENT_TYPE)


def _gate_headers() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            TRACEPARENT: _trace(),
            EVENT_ID_HEADER: _header("Id of the event that this came from."),
            DECISION_HEADER: _header("accept, contain, quarantine, reject, duplicate or record."),
            REASON_HEADER: _header("Reason code, on the marker of a dead letter."),
            TARGET_HEADER: _header("What a command was about, on its verdict."),
        },
    }


def _in_order(name: str, title: str) -> dict[str, Any]:
    return _message(name, title, _file(name), _gate_headers(), "Tenant", "application/json")


def _dead_letter() -> dict[str, Any]:
    headers = {
        "type": "object",
        "description": "The original headers, and one more.",
        "required": [DEAD_LETTER_HEADER],
        "properties": {
            DEAD_LETTER_HEADER: {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": _file("memsluice.dead-letter.v1"),
            }
        },
    }
    title = "What could not be read or authenticated, byte for byte"
    return _message("memsluice.dead-letter.v1", title, {}, headers, "The original key", "application/octet-stream")


def _channel(topic: TopicSpec, messages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    configuration: dict[str, Any] = {
        "cleanup.policy": [topic.spec.cleanup],
        "retention.ms": topic.spec.retention,
        "max.message.bytes": topic.spec.max_message,
    }
    if topic.spec.retention_size is not None:
        configuration["retention.bytes"] = topic.spec.retention_size
    return {
        "address": topic.name,
        "description": topic.meta.description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages[topic.name]},
        "bindings": {
            "kafka": {
                "topic": topic.name,
                "partitions": topic.spec.partitions,
                "replicas": topic.spec.replication,
                "topicConfiguration": configuration,
                "bindingVersion": BINDING,
            }
        },
    }


def _operations(topics: dict[str, TopicSpec]) -> dict[str, Any]:
    operations: dict[str, Any] = {}
    for action, table in (("receive", _RECEIVES), ("send", _SENDS)):
        for topic, (stage, summary) in table.items():
            if topic not in topics:
                continue
            operations[f"{stage}.{action}.{topic}"] = {
                "action": action,
                "channel": {"$ref": f"#/channels/{topic.replace('~', '~0').replace('/', '~1')}"},
                "summary": summary,
                "tags": [{"name": stage}],
            }
    return operations
