"""A wrong argument is refused where it is given, by its name, and not by an error from the inside."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.home import SECRET_TEXT, keys, session

from memsluice.client.aio import AsyncAgentSession, AsyncMemoryWriter
from memsluice.client.arguments import VALUE_CHARS_MAX
from memsluice.client.options import WriterOptions
from memsluice.client.session import AgentSession
from memsluice.client.writer import MemoryWriter, OperatorChannel, RecallChannel, RuntimeChannel
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError, InvalidArgument
from memsluice.events.models import Action, Channel

NOWHERE = {"bootstrap.servers": "127.0.0.1:9"}
DARK = WriterOptions(check_seconds=None)
ANY: Any = None
KINDS: dict[Role, Any] = {
    Role.PRODUCER: MemoryWriter,
    Role.USER_CHANNEL: MemoryWriter,
    Role.READER: RecallChannel,
    Role.RUNTIME: RuntimeChannel,
    Role.OPERATOR: OperatorChannel,
    Role.REVIEWER: OperatorChannel,
}

CHANNELS: dict[Role, Channel] = {Role.USER_CHANNEL: "user", Role.OPERATOR: "operator", Role.REVIEWER: "operator"}


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[MemoryWriter]:
    """Give a writer without a broker."""
    made = MemoryWriter(NOWHERE, keys(tmp_path / "writer")[1], DARK)
    yield made
    made.close(0)


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[RuntimeChannel]:
    """Give a runtime channel without a broker."""
    made = RuntimeChannel(NOWHERE, keys(tmp_path / "runtime", Role.RUNTIME)[1], DARK)
    yield made
    made.close(0)


@pytest.mark.parametrize("role", Role)
def test_a_credential_opens_the_channels_of_its_role_alone(tmp_path: Path, role: Role) -> None:
    """Any other refuses it at opening, and names credential, role, what it needs, and what to open instead."""
    _, path = keys(tmp_path, role, CHANNELS.get(role, "agent"))
    for kind in set(KINDS.values()):
        if kind is KINDS[role]:
            kind(NOWHERE, path, DARK).close(0)
            continue
        with pytest.raises(ConfigError) as told:
            kind(NOWHERE, path, DARK)
        assert str(told.value).startswith(f"credential {path.stem} has the role {role.value}, and a {kind.__name__} ")
        assert f"open a {KINDS[role].__name__} with it" in str(told.value)


@pytest.mark.parametrize("credentials", [None, [], 7, b"bytes", {}, [None], lambda: None])
def test_what_is_no_credential_is_refused_at_opening(credentials: Any) -> None:
    """None, an empty list, a number, a function that gives none: the argument is named."""
    with pytest.raises(InvalidArgument, match="argument credentials "):
        MemoryWriter(NOWHERE, credentials, DARK)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"tenant": None}, "argument tenant must be the name of a tenant, a string; it is None"),
        ({"tenant": ""}, "argument tenant must be the name of a tenant; it is empty"),
        ({"tenant": 7}, "argument tenant .* it is of type int"),
        ({"tenant": "acme", "home": "home"}, r"argument home must be a pathlib\.Path.* it is of type str"),
        ({"tenant": "acme", "options": {"delivery_seconds": 3}}, r"argument options must be WriterOptions\(\.\.\.\)"),
    ],
)
def test_open_local_names_the_argument_that_is_wrong(arguments: dict[str, Any], named: str) -> None:
    """Before a home is looked at, in the channels and in their counterparts for asyncio."""
    for kind in set(KINDS.values()):
        with pytest.raises(InvalidArgument, match=named):
            kind.open_local(**arguments)
    with pytest.raises(InvalidArgument, match=named):
        asyncio.run(AsyncMemoryWriter.open_local(**arguments))


def test_settings_that_are_no_mapping_are_refused(tmp_path: Path) -> None:
    """Such as the address alone, or a Connection: the message says where settings come from."""
    with pytest.raises(InvalidArgument, match=r"argument settings must be .*Connection\.confluent\(user\)"):
        MemoryWriter("127.0.0.1:9", keys(tmp_path)[1], DARK)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compression", "zip"), ("compression", []), ("structured", 1), ("buffer_messages", -1),
        ("buffer_messages", 0), ("buffer_messages", True), ("buffer_messages", 2**31), ("buffer_kib", 1.5),
        ("linger_ms", -1), ("linger_ms", None), ("delivery_seconds", 0), ("delivery_seconds", "x"),
        ("delivery_seconds", float("nan")), ("delivery_seconds", 0.001), ("delivery_seconds", True),
        ("check_seconds", 0), ("check_seconds", "x" * 100), ("partitions", 0), ("source", ""), ("source", "s" * 257),
        ("source", 7), ("clock", 3), ("new_id", "id"), ("entropy", None),
    ],
)  # fmt: skip
def test_an_option_that_is_not_allowed_is_named_with_its_value(name: str, value: Any) -> None:
    """When the options are made; what is allowed is said, and no more than 40 characters of the value are quoted."""
    with pytest.raises(InvalidArgument) as told:
        WriterOptions(**{name: value})
    said = str(told.value)
    assert said.startswith(f"option {name} must be ")
    quoted = said.rpartition("; it is ")[2]
    assert quoted == repr(value) or (len(quoted) == VALUE_CHARS_MAX and quoted.endswith("…"))


def test_the_ends_of_the_ranges_of_options_open_a_writer(tmp_path: Path) -> None:
    """What the options allow librdkafka takes, too."""
    _, path = keys(tmp_path)
    least = WriterOptions(buffer_messages=1, buffer_kib=1, linger_ms=0, delivery_seconds=0.001, check_seconds=None)
    most = WriterOptions(
        buffer_messages=2**31 - 1, buffer_kib=2**31 - 1, linger_ms=900_000, delivery_seconds=2_000_000,
        check_seconds=None,
    )  # fmt: skip
    for options in (least, most):
        MemoryWriter(NOWHERE, path, options).close(0)


CALLS: dict[str, tuple[str, Callable[[MemoryWriter, RuntimeChannel], object]]] = {
    "a session's name": ("session", lambda writer, runtime: writer.write("acme", "x")),  # type: ignore[arg-type]
    "an observation's session": ("session", lambda writer, runtime: runtime.open_session(ANY)),
    "parents as one text": ("parents", lambda writer, runtime: writer.write(session(), "x", parents="e-1")),
    "parents as a number": ("parents", lambda writer, runtime: writer.write(session(), "x", parents=7)),  # type: ignore[arg-type]
    "a payload": ("payload", lambda writer, runtime: writer.publish("x")),  # type: ignore[arg-type]
    "channels swapped": ("writer", lambda writer, runtime: AgentSession(session(), runtime, writer)),  # type: ignore[arg-type]
    "no runtime": ("runtime", lambda writer, runtime: AgentSession(session(), writer, ANY)),
    "a wrong recall channel": ("recalls", lambda writer, runtime: AgentSession(session(), writer, runtime, writer)),  # type: ignore[arg-type]
    "a tenant for a session": ("session", lambda writer, runtime: AgentSession("acme", writer, runtime)),  # type: ignore[arg-type]
    "no room": ("pending_max", lambda writer, runtime: AgentSession(session(), writer, runtime, pending_max=0)),
    "a session opened by name": ("session", lambda writer, runtime: AgentSession.open_local("acme")),  # type: ignore[arg-type]
    "the same for asyncio": ("session", lambda writer, runtime: asyncio.run(AsyncAgentSession.open_local(ANY))),
    "channels for asyncio": ("writer", lambda writer, runtime: AsyncAgentSession(session(), ANY, ANY)),
    "a session's payload": ("payload", lambda writer, runtime: AgentSession(session(), writer, runtime).publish(ANY)),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_names_the_argument_that_is_wrong(writer: MemoryWriter, runtime: RuntimeChannel, case: str) -> None:
    """No AttributeError from the inside: which argument, what it must be, and of which type it is."""
    name, call = CALLS[case]
    with pytest.raises(InvalidArgument, match=f"argument {name} must be .*; it is "):
        call(writer, runtime)


def test_recalls_and_commands_name_the_argument_that_is_wrong(tmp_path: Path) -> None:
    """What was returned is a sequence, a command's parameters are a mapping."""
    reader = RecallChannel(NOWHERE, keys(tmp_path / "1", Role.READER)[1], DARK)
    operator = OperatorChannel(NOWHERE, keys(tmp_path / "2", Role.OPERATOR, "operator")[1], DARK)
    with reader, pytest.raises(InvalidArgument, match="argument returned must be a sequence of Returned; it is None"):
        reader.recalled(session(), "tea?", ANY)
    with operator, pytest.raises(InvalidArgument, match="argument parameters must be a mapping of strings, or None"):
        operator.command("acme", Action.RELEASE, "e-1", ANY, parameters=[1])  # type: ignore[arg-type]


def test_an_unknown_argument_of_a_write_is_named(writer: MemoryWriter, runtime: RuntimeChannel) -> None:
    """By its own name, with those that there are; the content is not quoted."""
    agent = AgentSession(session(), writer, runtime)
    for write in (lambda **more: writer.write(session(), SECRET_TEXT, **more), lambda **more: agent.write("x", **more)):
        with pytest.raises(InvalidArgument) as told:
            write(nonsense=1)
        assert str(told.value) == (
            "write() has no argument 'nonsense': it takes content, event_id, time, namespace, key, visibility, kind, "
            "parents, origin, claimed_tier"
        )
        with pytest.raises(InvalidArgument, match="no argument 'tenant'"):
            write(tenant="globex")
