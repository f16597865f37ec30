"""The AsyncAPI document: valid by AsyncAPI's own schema, and in agreement with topics, schemas and real messages."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from jsonschema import Draft7Validator
from tests.events.build import a_write, message
from tests.schemas.load import TOP, asyncapi, asyncapi_schema, schemas, validator

from memsluice.client.build import event_type_of
from memsluice.events.names import EventType
from memsluice.topics.names import OVERFLOW, PARTITION_STATES, PARTITIONS
from memsluice.topics.spec import load_topics

TRACE = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"


def errors(document: Any) -> list[str]:
    """Return what AsyncAPI's own schema finds wrong."""
    return [error.message for error in Draft7Validator(asyncapi_schema()).iter_errors(document)]


def test_it_is_valid_asyncapi_3() -> None:
    """The official schema of AsyncAPI 3.0.0 finds nothing wrong."""
    assert asyncapi()["asyncapi"] == "3.0.0"
    assert errors(asyncapi()) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("asyncapi",), "2.6.0"),
        (("info", "title"), None),
        (("channels", "memory.events.v1", "bindings", "kafka", "partitions"), 0),
        (("operations", "seal.receive.memory.events.v1", "action"), "consume"),
        (("components", "securitySchemes", "scram", "type"), "scram"),
        (("components", "messages", "memory.write.v1", "bindings", "kafka", "key"), 7),
    ],
)
def test_the_check_can_fail(path: tuple[str, ...], value: Any) -> None:
    """A fault anywhere, bindings included, is found: the check above is one."""
    damaged = copy.deepcopy(asyncapi())
    inner = damaged
    for step in path[:-1]:
        inner = inner[step]
    assert path[-1] in inner
    inner[path[-1]] = value
    assert errors(damaged)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _resolve(pointer: str) -> Any:
    node = asyncapi()
    for part in pointer.removeprefix("#/").split("/"):
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def test_every_reference_leads_somewhere() -> None:
    """Local references resolve, and files exist; every committed schema is reached from the document."""
    references = set(_references(asyncapi()))
    for local in (reference for reference in references if reference.startswith("#/")):
        assert _resolve(local)
    files = {reference.removeprefix("./schemas/") for reference in references if reference.startswith("./")}
    assert all((TOP / "schemas" / name).is_file() for name in files)
    reached = set(files)
    for name in files:
        reached |= {reference for reference in _references(schemas()[name]) if not reference.startswith("#")}
    assert reached == set(schemas()) - {"memsluice.policy.v1.json"}  # that of a file, not of a message


def test_channels_are_the_topics() -> None:
    """Every topic of ours is a channel with its partitions, policy, retention and limits, and there are no others."""
    topics = {topic.name: topic for topic in load_topics() if topic.name.startswith("memory.")}
    for name in (PARTITION_STATES, OVERFLOW):  # neither is for anybody else
        del topics[name]
    assert set(asyncapi()["channels"]) == set(topics)
    for name, channel in asyncapi()["channels"].items():
        binding, spec = channel["bindings"]["kafka"], topics[name].spec
        assert channel["address"] == binding["topic"] == name
        assert binding["partitions"] == spec.partitions == PARTITIONS
        assert binding["replicas"] == spec.replication
        assert binding["topicConfiguration"] == {
            "cleanup.policy": [spec.cleanup],
            "retention.ms": spec.retention,
            "max.message.bytes": spec.max_message,
            **({} if spec.retention_size is None else {"retention.bytes": spec.retention_size}),
        }


def test_messages_are_those_that_the_topic_files_name() -> None:
    """The topic files say in words what their records carry; the document says the same types."""
    compared = 0
    for topic in load_topics():
        if not topic.name.startswith("memory.") or topic.name in (PARTITION_STATES, OVERFLOW):
            continue
        stated = re.findall(r"mem(?:ory|sluice)\.[a-z-]+\.v1", topic.meta.schema_)
        names = list(asyncapi()["channels"][topic.name]["messages"])
        if topic.name == "memory.accepted.v1":
            assert stated == ["memsluice.admission.v1"], "the admission is inside of the accepted record"
        elif stated:
            assert names == stated
            compared += 1
    assert compared > 1


def test_who_writes_and_reads_is_what_the_access_lists_allow() -> None:
    """Every operation of a stage in the document is one that the broker lets it do."""
    topics = {topic.name: topic.spec for topic in load_topics()}
    operations = asyncapi()["operations"]
    assert {name.split(".")[0] for name in operations} >= {"seal", "screen", "land"}
    for name, operation in operations.items():
        stage, action, topic = name.split(".", 2)
        needed = {"receive": "READ", "send": "WRITE"}[action]
        allowed = {grant.principal for grant in topics[topic].access if needed in grant.operations}
        assert stage in allowed, name
        assert operation["channel"]["$ref"] == f"#/channels/{topic}"


def test_a_real_message_is_what_the_document_says() -> None:
    """Headers and value of a message that the SDK builds validate against the message of its type."""
    built = message(traceparent=TRACE)
    described = asyncapi()["components"]["messages"][event_type_of(a_write()).value]
    headers = {name: (value or b"").decode() for name, value in built.headers}
    validator(described["headers"]["schema"]).validate(headers)
    assert set(headers) == set(described["headers"]["schema"]["properties"])
    assert headers["content-type"] == described["contentType"]
    validator(described["payload"]["schema"]).validate(orjson.loads(built.value))
    wrong = {**headers, "ce_type": EventType.RECALL.value}
    assert list(validator(described["headers"]["schema"]).iter_errors(wrong))
