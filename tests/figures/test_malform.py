"""The fuzzer behind ``malformed_preserved``: what it makes really is malformed, and of every kind."""

import random

import pytest

from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import Registry
from memsluice.envelope.seals import Position
from memsluice.errors import InputError
from memsluice.events import cloudevent
from memsluice.events.models import Write
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.gate.checks.authenticity import authenticate
from memsluice.topics.names import EVENTS, PARTITIONS
from memsluice_lab import cast
from memsluice_lab.figures.malformed import COMPRESSED_BYTES, LARGE, LARGE_BYTES_MAX, MAKERS, Maker, Message, malform
from memsluice_lab.streams import Published, signed

NOW_MS = 1_767_600_000_000
WRITE = Write(
    id="w-1",
    tenant="acme",
    time="2026-01-05T08:00:00Z",  # type: ignore[arg-type]
    agent="scribe",
    principal="ada",
    session="s-1",
    content="The quarterly report is due on the fifth.",
)


@pytest.fixture(scope="module")
def valid() -> tuple[Message, Keyring, Registry]:
    """A valid message, and the keys and registry under which it is."""
    keyring, registry, signers = cast.in_memory(["acme"], seed="malform")
    key, value, headers = signed(Published("user", EventType.WRITE, WRITE, NOW_MS, 1), signers)
    return Message(key, value, headers, partition_of("acme", PARTITIONS)), keyring, registry


def _read(message: Message, keyring: Keyring, registry: Registry) -> None:
    received = cloudevent.read(message.key, message.value, message.headers)
    position = Position(EVENTS, message.partition, 0, NOW_MS)
    authenticate(received, position, keyring=keyring, registry=registry, partitions=PARTITIONS, commands=False)


def test_the_original_is_valid(valid: tuple[Message, Keyring, Registry]) -> None:
    """What the fuzzer starts from passes the gate: so a dead letter is due to what it did."""
    _read(*valid)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__.strip("_"))
def test_every_kind_is_malformed(maker: Maker, valid: tuple[Message, Keyring, Registry]) -> None:
    """No kind of malformed message passes the gate by accident, which would make the figure wrong."""
    message, keyring, registry = valid
    chance = random.Random(5)
    for _ in range(200):
        with pytest.raises(InputError):
            _read(maker(message, chance), keyring, registry)


def test_the_same_seed_gives_the_same_messages(valid: tuple[Message, Keyring, Registry]) -> None:
    """A failing run can be repeated to the byte, and holds large messages too."""
    once, again = (malform([valid[0]], 120, seed=3) for _ in range(2))
    assert once == again
    sizes = [len(message.value or b"") for message in once]
    assert sum(300_000 <= size <= LARGE_BYTES_MAX for size in sizes) >= LARGE
    assert sorted(size for size in sizes if size > LARGE_BYTES_MAX) == sorted((*COMPRESSED_BYTES, *COMPRESSED_BYTES))
