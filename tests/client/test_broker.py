"""The SDK against the real broker."""

import asyncio
import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.client.home import SECRET_TEXT, keys, read_at, reading, session
from tests.patience import HANG_S

from memsluice.client.aio import AsyncMemoryWriter
from memsluice.client.options import WriterOptions
from memsluice.client.publisher import Receipt
from memsluice.client.writer import MemoryWriter, OperatorChannel, RecallChannel, RuntimeChannel
from memsluice.envelope import dsse
from memsluice.envelope.registry import Role
from memsluice.errors import BrokerUnavailable, BufferFull, ConfigError, NotDelivered, WriterClosed
from memsluice.events import cloudevent
from memsluice.events.models import Action, Origin, Returned, Tier, parse_payload
from memsluice.events.names import TRACEPARENT, EventType, payload_type
from memsluice.events.partition import partition_of
from memsluice.keystore import rotation
from memsluice.keystore.store import KeyStore
from memsluice.topics.names import COMMANDS, DEAD_LETTER, EVENTS, PARTITIONS, USER_ADMIN, USER_OPERATOR, USER_PRODUCER

REFUSED_PORT = "127.0.0.1:9"


@pytest.fixture
def settings(stack: Any) -> dict[str, Any]:
    """Give the settings of a producing user."""
    return stack.connection.confluent(USER_PRODUCER)


@pytest.fixture
def dark(tmp_path: Path) -> Iterator[MemoryWriter]:
    """Give a writer whose broker is down: connections are refused, and no write is given up within a test's time."""
    yield from _dark(tmp_path, 600.0)


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[MemoryWriter]:
    """Give a writer whose broker is down, and which gives a write up after two seconds."""
    yield from _dark(tmp_path, 2.0)


def _dark(tmp_path: Path, delivery_seconds: float) -> Iterator[MemoryWriter]:
    _, credential = keys(tmp_path)
    options = WriterOptions(check_seconds=None, delivery_seconds=delivery_seconds, buffer_messages=50)
    writer = MemoryWriter({"bootstrap.servers": REFUSED_PORT}, credential, options)
    yield writer
    writer.close(0)


def verified(store: KeyStore, message: Any, event_type: EventType) -> Any:
    """Return the payload of a message, read and verified as the gate does it."""
    received = cloudevent.read(message.key(), message.value(), tuple(message.headers()))
    assert received.type is event_type
    ring = store.load_keyring()
    data = dsse.verify(dsse.parse(received.envelope), payload_type(event_type.value), ring.direct)
    payload = parse_payload(event_type, data)
    cloudevent.check_agreement(received, payload)
    return payload


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("structured", [False, True], ids=["binary", "structured"])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_receipt_is_what_a_consumer_sees(
    stack: Any, settings: dict[str, Any], tmp_path: Path, compression: Any, structured: bool
) -> None:
    """Position and append time of the receipt, and the event itself, are those of the record on the topic."""
    store, credential = keys(tmp_path)
    options = WriterOptions(compression=compression, structured=structured)
    with MemoryWriter(settings, credential, options) as memory, reading(stack.connection) as consumer:
        content = "prefers tea " * 200
        receipt = memory.write(session(), content, parents=["e-0"], key="drink", claimed_tier=4).result(HANG_S)
        message = read_at(consumer, receipt)
    payload = verified(store, message, EventType.WRITE)
    assert payload.id == receipt.event_id
    assert (payload.content, payload.parents, payload.key) == (content, ("e-0",), "drink")
    assert (message.partition(), message.offset(), message.timestamp()[1]) == (
        receipt.partition, receipt.offset, receipt.append_ms,
    )  # fmt: skip
    assert message.topic() == receipt.topic == EVENTS
    assert abs(receipt.append_ms - time.time() * 1000) < HANG_S * 1000, "Unix milliseconds, of the broker's clock"
    assert len(dict(message.headers())[TRACEPARENT]) == 55


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_two_hundred_tenants_lie_where_the_gate_looks(settings: dict[str, Any], tmp_path: Path) -> None:
    """librdkafka's partitioner, the broker and the gate agree on the partition of every tenant."""
    _, credential = keys(tmp_path)
    with MemoryWriter(settings, credential) as memory:
        pending = {
            tenant: memory.write(session(tenant), "x") for tenant in (f"t{number}-{number**3}" for number in range(200))
        }
        found = {tenant: receipt.result(HANG_S).partition for tenant, receipt in pending.items()}
    assert found == {tenant: partition_of(tenant, PARTITIONS) for tenant in pending}
    assert len(set(found.values())) == PARTITIONS


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_a_record_on_the_wrong_partition_is_not_reported_as_delivered(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the partitioner be wrong in spite of all checks, the first delivery says so."""
    _, credential = keys(tmp_path)
    monkeypatch.setattr("memsluice.client.publisher.fixed_settings", lambda _: {"partitioner": "fnv1a"})
    tenants = [f"tenant-{number}" for number in range(40)]
    with MemoryWriter(settings, credential) as memory:
        results = [memory.write(session(tenant), "x").exception(HANG_S) for tenant in tenants]
    assert any(isinstance(error, ConfigError) and "wrong partitioner" in str(error) for error in results)


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_start_up_refuses_a_topic_with_another_partition_count(settings: dict[str, Any], tmp_path: Path) -> None:
    """A writer for 16 partitions does not start on a topic of 8, and one for a missing topic says which."""
    _, credential = keys(tmp_path)
    with pytest.raises(ConfigError, match="8 partitions, but the gate expects 16"):
        MemoryWriter(settings, credential, WriterOptions(partitions=16))
    with pytest.raises(ConfigError, match=r"memory\.nowhere"):
        MemoryWriter(settings, credential, topic="memory.nowhere.v1")


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_a_refusal_by_the_broker_reaches_the_caller(stack: Any, tmp_path: Path) -> None:
    """A user without the right to write gets a typed error naming the broker's reason, not silence."""
    _, credential = keys(tmp_path)
    with MemoryWriter(stack.connection.confluent("land"), credential, WriterOptions(check_seconds=None)) as memory:
        error = memory.write(session(), SECRET_TEXT).exception(HANG_S)
    assert isinstance(error, NotDelivered)
    assert "AUTHORIZATION" in str(error).upper()


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_every_channel_publishes_its_kind(stack: Any, tmp_path: Path) -> None:
    """Sessions, observations, recalls and commands arrive signed, on their topics."""
    home, connection = stack.home, stack.connection
    del home
    results: list[tuple[KeyStore, Receipt, EventType]] = []
    store, path = keys(tmp_path / "1", Role.RUNTIME)
    with RuntimeChannel(connection.confluent("runtime"), path) as runtime:
        results.append((store, runtime.open_session(session()).result(HANG_S), EventType.OBSERVATION))
        seen = runtime.observe(session(), Origin.WEB, digest="ab" * 32, content="a page")
        results.append((store, seen.result(HANG_S), EventType.OBSERVATION))
    store, path = keys(tmp_path / "2", Role.READER)
    with RecallChannel(connection.confluent("reader"), path) as reader:
        given = Returned(object_id="0" * 36, version=3, event_id="e", tier=Tier.EXTERNAL_WEB, taint=True)
        results.append((store, reader.recalled(session(), "tea?", [given]).result(HANG_S), EventType.RECALL))
    store, path = keys(tmp_path / "3", Role.OPERATOR, "operator")
    with OperatorChannel(connection.confluent(USER_OPERATOR), [path], topic=COMMANDS) as operator:
        order = operator.command(
            "acme", Action.RELEASE, "e-1", datetime.now(UTC) + timedelta(hours=1), digest="cd" * 32
        )
        results.append((store, order.result(HANG_S), EventType.COMMAND))
    with reading(connection) as consumer:
        payloads = [verified(store, read_at(consumer, receipt), kind) for store, receipt, kind in results]
    assert [receipt.topic for _, receipt, _ in results] == [EVENTS, EVENTS, EVENTS, COMMANDS]
    assert [getattr(payload, "origin", None) for payload in payloads[:2]] == [Origin.OPEN, Origin.WEB]
    assert payloads[2].returned[0].version == 3
    assert payloads[3].action is Action.RELEASE


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_open_local_finds_stack_and_credential(stack: Any) -> None:
    """With a home's stack and keys, one call gives a writer; without a credential it says what to run."""
    store = KeyStore.init(stack.home, 0)
    assert store.keyring_file.exists()
    with pytest.raises(ConfigError, match="memsluice keys new reader"):
        RecallChannel.open_local(tenant="a-tenant-without-a-reader", home=stack.home)
    _, path = keys(stack.home)
    try:
        with MemoryWriter.open_local(tenant="acme", home=stack.home) as memory:
            assert memory.write(session(), "x").result(HANG_S).topic == EVENTS
    finally:
        path.unlink()


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_asyncio_writes_overlap_and_give_receipts(settings: dict[str, Any], tmp_path: Path) -> None:
    """Five hundred writes published at once are acknowledged, each with its own position, in one event loop."""
    _, credential = keys(tmp_path)

    async def run() -> list[Receipt]:
        async with await AsyncMemoryWriter.open(settings, credential) as memory:
            cancelled = memory.write(session(), "no longer awaited")
            cancelled.cancel()
            return await asyncio.wait_for(
                asyncio.gather(*(memory.write(session(), f"{n}") for n in range(500))), timeout=HANG_S
            )

    receipts = asyncio.run(run())
    assert len({(receipt.partition, receipt.offset) for receipt in receipts}) == 500


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_rotation_while_running_loses_nothing(settings: dict[str, Any], stack: Any, tmp_path: Path) -> None:
    """A running writer changes over to the successor of its credential; every event verifies, none is refused."""
    store, credential = keys(tmp_path)
    clock = [datetime.now(UTC)]
    with MemoryWriter(settings, credential, WriterOptions(clock=lambda: clock[0])) as memory:
        before = memory.write(session(), "before").result(HANG_S)
        now_ms = int(clock[0].timestamp() * 1000)
        done = rotation.rotate(store, credential.stem, now_ms, overlap_ms=60_000)
        clock[0] += timedelta(milliseconds=rotation.ACTIVATION_MS)
        deadline = time.monotonic() + HANG_S
        after: list[Receipt] = []
        while not memory.source().endswith(done.new_kid):
            assert time.monotonic() < deadline
            after.append(memory.write(session(), "while").result(HANG_S))
            time.sleep(0.1)  # files are looked at once a second
        after.append(memory.write(session(), "after").result(HANG_S))
    with reading(stack.connection) as consumer:
        messages = [read_at(consumer, receipt) for receipt in (before, *after)]
    for message in messages:
        verified(store, message, EventType.WRITE)
    kids = [
        cloudevent.read(m.key(), m.value(), tuple(m.headers())).envelope["signatures"][0]["keyid"] for m in messages
    ]
    assert kids[0] == credential.stem
    assert kids[-1] == done.new_kid


def _outcomes(pending: list["Future[Receipt]"]) -> list[BaseException | None]:
    return [receipt.exception(HANG_S) for receipt in pending]


def test_broker_down_is_a_typed_error_and_nothing_waits(
    impatient: MemoryWriter, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a broker a write is queued, fails as NotDelivered later, and its content appears nowhere."""
    caplog.set_level(logging.DEBUG)
    pending = [impatient.write(session(), SECRET_TEXT) for _ in range(5)]
    errors = _outcomes(pending)
    assert all(type(error) is NotDelivered and error.event_id and error.maybe_written for error in errors)
    printed = "".join(capfd.readouterr()) + caplog.text + "".join(map(repr, errors))
    assert SECRET_TEXT not in printed


def test_a_full_buffer_is_an_error_and_not_a_wait(dark: MemoryWriter) -> None:
    """The fifty-first event of a buffer of fifty is refused at once, naming its id; the fifty keep their futures."""
    pending = [dark.write(session(), "x") for _ in range(50)]
    with pytest.raises(BufferFull, match="buffer holds 50 events") as caught:
        dark.write(session(), SECRET_TEXT, event_id="e-51")
    assert caught.value.event_id == "e-51"
    assert SECRET_TEXT not in str(caught.value)
    assert not any(receipt.done() for receipt in pending), "publishing did not wait for an outcome"
    dark.close(0)
    assert all(isinstance(error, WriterClosed) for error in _outcomes(pending))


def test_closing_leaves_no_future_open(dark: MemoryWriter) -> None:
    """Close gives up after its limit: every pending future fails, later writes are refused, closing again is fine."""
    pending = [dark.write(session(), "x") for _ in range(20)]
    dark.close(0)
    assert all(isinstance(error, WriterClosed) for error in _outcomes(pending))
    with pytest.raises(WriterClosed):
        dark.write(session(), "x")
    dark.close(0)


def test_start_up_without_a_broker_is_a_typed_error(tmp_path: Path) -> None:
    """The start-up check gives up after its limit, and says which broker did not answer, why, and what to do."""
    _, credential = keys(tmp_path)
    for limit_s in (0.5, 8.0, 120.0):  # on a busy machine the client hears later why nobody answers
        with pytest.raises(BrokerUnavailable) as told:
            MemoryWriter({"bootstrap.servers": REFUSED_PORT}, credential, WriterOptions(check_seconds=limit_s))
        if "_TRANSPORT" in str(told.value):
            break
    assert str(told.value) == (
        f"the broker at {REFUSED_PORT} did not answer within {limit_s:g} s (_TRANSPORT): start it, or check "
        "bootstrap.servers"
    )


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_any_null_or_headerless_message_can_exist(stack: Any) -> None:
    """The broker takes what the SDK never sends (no key, no value, repeated headers): the reader refuses it by code."""
    producer = Producer(stack.connection.confluent(USER_ADMIN))
    done: list[Any] = []
    headers = [("ce_id", b"1"), ("ce_id", b"2"), ("x", None)]
    producer.produce(
        DEAD_LETTER, value=None, headers=headers, partition=0, on_delivery=lambda e, m: done.append((e, m))
    )
    assert producer.flush(HANG_S) == 0
    error, sent = done[0]
    assert error is None
    receipt = Receipt("", DEAD_LETTER, 0, sent.offset(), 0)
    with reading(stack.connection) as consumer:
        message = read_at(consumer, receipt)
    assert message.headers() == headers, "repetitions and nulls survive the broker"
    with pytest.raises(cloudevent.MalformedEvent, match="the record has no value"):
        cloudevent.read(message.key(), message.value(), tuple(message.headers()))
