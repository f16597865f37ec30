"""The SDK without a broker: what it signs, what it refuses at once, and what it never says."""

import ast
import logging
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from tests.client.home import NOW_MS, SECRET_TEXT, keys, session
from tests.events.build import SIGNER, a_write

from memsluice.client import partitioner
from memsluice.client.build import build
from memsluice.client.options import WriterOptions
from memsluice.client.requests import observation
from memsluice.client.tracing import Sending
from memsluice.client.writer import MemoryWriter, OperatorChannel
from memsluice.envelope import dsse
from memsluice.envelope.registry import Role
from memsluice.errors import (
    ConfigError,
    CrossTenant,
    ExpiredKey,
    InputError,
    LimitExceeded,
    MalformedEvent,
    NotPermitted,
)
from memsluice.events import cloudevent
from memsluice.events.models import Kind, Origin, Tier, Visibility, parse_payload
from memsluice.events.names import EventType
from memsluice.keystore.store import DAY_MS

NOWHERE = {"bootstrap.servers": "127.0.0.1:9"}


class Kept(MemoryWriter):
    """A writer that keeps what it would hand to librdkafka."""

    def _produce(self, topic: str, message: Any, delivered: Any, partition: int | None = None) -> None:
        self.kept = (topic, message)


def options(**more: Any) -> WriterOptions:
    """Return options with a clock that stands still and no broker to ask."""
    return WriterOptions(
        check_seconds=None, clock=lambda: datetime.fromtimestamp(NOW_MS / 1000, UTC), new_id=lambda: "e-1",
        entropy=lambda size: b"\x07" * size, **more,
    )  # fmt: skip


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    """Give a writer that keeps its messages."""
    _, credential = keys(tmp_path)
    writer = Kept(NOWHERE, credential, options())
    yield writer
    writer.close(0)


def payload_of(message: Any) -> Any:
    """Return the payload that a message carries."""
    received = cloudevent.read(*message)
    return parse_payload(received.type, dsse.parse(received.envelope).payload)


def test_a_write_says_what_was_asked(writer: Kept) -> None:
    """Every argument reaches the payload; id and time come from the injected factory and clock."""
    writer.write(
        session(), "tea", namespace="n", key="k", visibility="shared", kind="facts", parents=["a", "b"], origin="form",
        claimed_tier=4,
    )  # fmt: skip
    topic, message = writer.kept
    payload = payload_of(message)
    assert topic == "memory.events.v1"
    assert (payload.id, payload.time.timestamp() * 1000) == ("e-1", NOW_MS)
    assert (payload.namespace, payload.key, payload.origin) == ("n", "k", "form")
    assert (payload.visibility, payload.kind, payload.parents) == (Visibility.SHARED, Kind.FACTS, ("a", "b"))
    assert payload.claimed_tier is Tier.EXTERNAL_TOOL


def test_a_retry_is_the_same_event(writer: Kept) -> None:
    """With its own id and time an event said twice is the same bytes, but for the trace."""
    time = datetime(2026, 5, 4, 5, 2, 1, tzinfo=timezone(timedelta(hours=2)))
    writer.write(session(), "tea", event_id="mine", time=time)
    first = writer.kept[1]
    writer.write(session(), "tea", event_id="mine", time=time)
    assert writer.kept[1] == first
    assert payload_of(first).id == "mine"


def test_build_is_pure() -> None:
    """The same payload and key give the same bytes: the embedded mode signs exactly as the broker's writers do."""
    assert build(a_write(), [SIGNER], source="s") == build(a_write(), [SIGNER], source="s")


def test_the_current_span_is_passed_on(writer: Kept) -> None:
    """Inside of an OpenTelemetry span the event carries that span's context, outside a new sampled trace."""
    writer.write(session(), "tea")
    assert dict(writer.kept[1].headers)["traceparent"] == b"00-" + b"07" * 16 + b"-" + b"07" * 8 + b"-01"
    context = SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(0))
    with trace.use_span(NonRecordingSpan(context)):
        writer.write(session(), "tea")
    assert dict(writer.kept[1].headers)["traceparent"] == b"00-" + b"%032x" % 0xABC + b"-" + b"%016x" % 0xDEF + b"-00"


def test_an_all_zero_trace_id_is_never_sent() -> None:
    """W3C calls zeros invalid; a generator that gives them is corrected."""
    sending = Sending("memory.events.v1", "e1", EventType.WRITE, bytes)
    assert sending.traceparent == "00-" + "0" * 31 + "1-" + "0" * 15 + "1-01"


@pytest.mark.parametrize(
    ("arguments", "kind", "field"),
    [
        ({"content": SECRET_TEXT * 2_000}, LimitExceeded, "content"),
        ({"content": SECRET_TEXT + "\ud800"}, MalformedEvent, "content"),
        ({"content": [SECRET_TEXT]}, MalformedEvent, "content"),
        ({"content": SECRET_TEXT, "parents": [SECRET_TEXT + " "]}, MalformedEvent, "parents.0"),
        ({"content": SECRET_TEXT, "key": SECRET_TEXT * 10}, LimitExceeded, "key"),
        ({"content": SECRET_TEXT, "visibility": SECRET_TEXT}, MalformedEvent, "visibility"),
        ({"content": SECRET_TEXT, "time": datetime(2026, 1, 1)}, MalformedEvent, "time"),
        ({"content": "\x01" * 32_768}, LimitExceeded, "value"),
    ],
)
def test_a_bad_argument_is_named_and_not_quoted(
    writer: Kept, arguments: dict[str, Any], kind: type[InputError], field: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception, its causes and the log name the field; what was to be remembered stays out of all of them."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(kind) as caught:
        writer.write(session(), **arguments)
    assert caught.value.field == field
    said, link = caplog.text, caught.value
    assert link.__cause__ is None
    assert link.__context__ is None
    assert SECRET_TEXT not in said + str(link) + repr(link)


def test_a_bad_name_in_a_session_is_refused(writer: Kept) -> None:
    """A tenant that could not be a tenant never reaches the topic."""
    with pytest.raises(MalformedEvent) as caught:
        writer.write(session("Not A Tenant"), "tea")
    assert caught.value.field == "tenant"


def test_what_the_gate_would_refuse_is_refused_at_once(tmp_path: Path) -> None:
    """Another event type, another tenant, an ended or not yet begun credential: typed, before anything is queued."""
    store, credential = keys(tmp_path)
    seen = observation("o", a_write().time, session(), Origin.OPEN, None, None)
    with Kept(NOWHERE, credential, options()) as writer, pytest.raises(NotPermitted, match="observation"):
        writer.publish(seen)
    held = store.credential(credential.stem)
    cases = {
        "tenant": (held.model_copy(update={"tenants": ("globex",)}), CrossTenant),
        "ended": (held.model_copy(update={"not_after_ms": NOW_MS}), ExpiredKey),
        "early": (held.model_copy(update={"not_before_ms": NOW_MS + 1}), ExpiredKey),
    }
    for changed, kind in cases.values():
        with Kept(NOWHERE, changed, options()) as writer, pytest.raises(kind):
            writer.write(session(), "tea")


def test_every_approver_signs(tmp_path: Path) -> None:
    """A command with two credentials carries two signatures over the same bytes, by different keys."""
    store, first = keys(tmp_path, Role.OPERATOR, "operator", days=1, now_ms=NOW_MS)
    _, second = keys(tmp_path, Role.OPERATOR, "operator")
    made: list[Any] = []

    class KeptOperator(OperatorChannel):
        def _produce(self, topic: str, message: Any, delivered: Any, partition: int | None = None) -> None:
            made.append((topic, message))

    with KeptOperator(NOWHERE, [first, second], options()) as operator:
        operator.command("acme", "erase", "acme", datetime.fromtimestamp((NOW_MS + DAY_MS) / 1000, UTC))  # type: ignore[arg-type]
    topic, message = made[0]
    envelope = dsse.parse(orjson.loads(message.value))
    assert topic == "memory.commands.v1"
    assert [signature.kid for signature in envelope.signatures] == [first.stem, second.stem]
    assert dsse.verify(envelope, "application/vnd.memory.command.v1+json", store.load_keyring().direct)


@pytest.mark.parametrize(
    "settings",
    [
        {"partitioner": "consistent_random"},
        {"partitioner": "murmur2"},
        {"enable.idempotence": False},
        {"acks": 1},
        {"request.required.acks": "0"},
    ],
)
def test_settings_that_would_lose_or_misplace_events_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    """Another partitioner, fewer acknowledgements, no idempotence: ConfigError naming the setting."""
    _, credential = keys(tmp_path)
    with pytest.raises(ConfigError, match=next(iter(settings))):
        MemoryWriter({**NOWHERE, **settings}, credential, options())


def test_the_required_settings_may_be_repeated() -> None:
    """Saying what is required anyway, in any of librdkafka's spellings, is no error."""
    same = {"partitioner": "murmur2_random", "enable.idempotence": "true", "acks": -1, "request.required.acks": "all"}
    assert partitioner.fixed_settings(same)["acks"] == "all"


def test_a_wrong_partitioner_is_found_at_start_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka's own function is compared with ours (and ours with Kafka's published values in tests/events)."""
    assert partitioner.check_samples(8), "librdkafka can be called here, so the comparison below is one"
    monkeypatch.setattr(partitioner, "_librdkafka_function", lambda: lambda *_: 3)
    with pytest.raises(ConfigError, match="other partitions than the gate expects"):
        partitioner.check_samples(8)


def test_a_missing_credential_file_is_found_at_start_up(tmp_path: Path) -> None:
    """Not at the first write."""
    with pytest.raises(ConfigError, match="memsluice keys new"):
        MemoryWriter(NOWHERE, tmp_path / "nobody.json", options())


def test_nonsense_settings_are_a_config_error(tmp_path: Path) -> None:
    """A misspelt setting of librdkafka is ours to report."""
    _, credential = keys(tmp_path)
    with pytest.raises(ConfigError, match="librdkafka refuses"):
        MemoryWriter({**NOWHERE, "no.such.setting": 1}, credential, options())


def test_no_log_call_of_the_sdk_can_carry_content() -> None:
    """Log calls and exceptions of the producer package take no payload, message, content or question."""
    forbidden = {"payload", "message", "content", "question", "value", "envelope"}
    folder = Path(partitioner.__file__).parent
    calls = [
        (path.name, node)
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(getattr(node.func, "value", None), "id", "") == "_log"
    ]
    assert calls
    for name, call in calls:
        names = {
            inner.id
            for argument in [*call.args, *(k.value for k in call.keywords)]
            for inner in ast.walk(argument)
            if isinstance(inner, ast.Name)
        }
        assert not names & forbidden, name


def test_event_types_go_to_their_topics() -> None:
    """Only commands travel on the command topic."""
    from memsluice.client.build import topic_of

    assert topic_of(a_write()) == "memory.events.v1"
    assert topic_of(observation("o", a_write().time, session(), Origin.OPEN, None, None)) == "memory.events.v1"
    assert EventType.COMMAND.value == "memory.command.v1"
